// Hands memory from one process to another: `handover decode ADDRESS`, `handover prefill ADDRESS`.
// Decode grants its cache and waits for the signal; prefill writes two blocks and raises it.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t cache_bytes = 64 << 20;
constexpr std::uint64_t blocks_are_there = 7;
constexpr auto patience = 30s;
constexpr Pair blocks[] = {{.local = 0, .remote = 4096, .length = 65536},
                           {.local = 131072, .remote = 1 << 20, .length = 65536}};

Result<void> decode(const char* address) {
  auto engine = Engine::open({.listen = address});
  if (!engine) return fail(engine.error());
  auto cache = engine->share(Memory::own(cache_bytes), "kv", Rights::write);
  if (!cache) return fail(cache.error());

  auto peer = engine->accept(Deadline::in(patience));
  if (!peer) return fail(peer.error());
  auto ready = peer->expect(blocks_are_there, /*count*/ 1);
  if (!ready) return fail(ready.error());
  if (auto signals = ready->wait(Deadline::in(patience)); !signals) return fail(signals.error());

  for (const Pair& block : blocks) {
    const auto* begin = cache->data() + block.remote;
    const auto right = std::count(begin, begin + block.length, std::byte{1});
    std::printf("%ld of %lu bytes are right\n", right, static_cast<unsigned long>(block.length));
  }
  return cache->release(Deadline::in(patience));  // no peer can write any more
}

Result<void> prefill(const char* address) {
  auto engine = Engine::open({.listen = ""});
  if (!engine) return fail(engine.error());
  auto cache = engine->add(Memory::own(cache_bytes));
  if (!cache) return fail(cache.error());
  std::fill_n(cache->data(), cache->size(), std::byte{1});

  auto remote = engine->fetch(address, "kv", Deadline::in(patience));
  if (!remote) return fail(remote.error());
  auto transfer =
      engine->write(*cache, *remote, blocks, {.signal = Signal{.id = blocks_are_there}});
  if (!transfer) return fail(transfer.error());
  if (auto ended = transfer->wait(Deadline::in(patience)); !ended) return ended;
  std::printf("%lu bytes written\n", static_cast<unsigned long>(transfer->report().bytes_done));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  weft::prepare_process();
  const std::string_view role = argc == 3 ? argv[1] : "";
  if (role != "decode" && role != "prefill") {
    std::fprintf(stderr, "usage: handover decode|prefill ADDRESS\n");
    return 2;
  }
  const Result<void> done = role == "decode" ? decode(argv[2]) : prefill(argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? 0 : 1;
}
