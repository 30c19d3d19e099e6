#include "engines.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/descriptor.hpp"
#include "renamed_endpoint.hpp"

namespace weft::test {
namespace {

std::atomic<std::uint64_t> next_seed{1};

bool can_bind(const sockaddr* address, socklen_t length) {
  const core::Descriptor made(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(made.get(), address, length) == 0;
}

}  // namespace

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const std::string& provider : all_providers())
    for (const TransportKind kind : {TransportKind::one_sided, TransportKind::bounce})
      variants.push_back({provider, kind});
  return variants;
}

std::vector<std::string> all_providers() {
  const char* named = std::getenv("WEFT_TEST_PROVIDERS");
  std::istringstream list(named != nullptr ? named : "tcp,shm");
  std::vector<std::string> providers;
  for (std::string each; std::getline(list, each, ',');) providers.push_back(each);
  return providers;
}

std::string lasting_address() {
  // Below those that Linux gives by itself (ip_local_port_range).
  constexpr int first = 10'000, count = 20'000;
  static std::atomic<int> next{getpid()};
  for (int tries = 0; tries < count; ++tries) {
    const int port = first + static_cast<int>(static_cast<unsigned>(next++) % count);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (can_bind(reinterpret_cast<const sockaddr*>(&address), sizeof address))
      return "127.0.0.1:" + std::to_string(port);
  }
  throw std::runtime_error("no port is free");
}

std::string name_of(const std::string& provider) {
  std::string name = provider;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char each) { return std::isalnum(each) == 0; }, '_');
  return name;
}

std::string name_of(const Variant& variant) {
  return name_of(variant.provider) +
         (variant.transport == TransportKind::bounce ? "_bounce" : "_one_sided");
}

namespace {

/// NICs that a test's rails are spread over, as many on each: all there are (WEFT_TEST_NICS), or as
/// many as divide the rails.
unsigned nics_for(unsigned rails) {
  const char* there = std::getenv("WEFT_TEST_NICS");
  unsigned nics = there != nullptr ? static_cast<unsigned>(std::atoi(there)) : 1;
  nics = std::clamp(nics, 1U, std::max(1U, rails));
  while (nics > 1 && rails % nics != 0) --nics;
  return nics;
}

}  // namespace

bool keys_fence(const Engine& engine) {
  const Info info = engine.info();
  return std::all_of(info.rails.begin(), info.rails.end(), [](const RailInfo& rail) {
    return rail.capability.fence == FenceScope::grant;
  });
}

Config config_for(const std::string& provider, unsigned rails) {
  rename_rails_if_asked();
  Config config;
  config.providers = {provider};
  config.max_nics = nics_for(rails);
  config.rails = rails / config.max_nics;
  config.default_timeout = 60s;
  // A machine loaded to the brim may starve a thread for seconds.
  config.death_after = 30s;
  return config;
}

Config config_for(const Variant& variant, unsigned rails) {
  Config config = config_for(variant.provider, rails);
  config.transport = variant.transport;
  return config;
}

std::pair<Peer, Peer> acquaint(Engine& a, Engine& b) {
  Peer to_b = must(a.connect(b.address(), soon()));
  Peer to_a = must(b.accept(soon()));
  return {std::move(to_b), std::move(to_a)};
}

Couple couple(const Config& a, const Config& b, const core::EngineHooks& hooks_a,
              const core::EngineHooks& hooks_b) {
  Engine first = must(core::open_engine(a, hooks_a));
  Engine second = must(core::open_engine(b, hooks_b));
  auto [to_b, to_a] = acquaint(first, second);
  return {std::move(first), std::move(second), std::move(to_b), std::move(to_a)};
}

Couple couple(const Config& both) {
  return couple(both, both);
}

std::span<std::byte> bytes_of(const Segment& segment) {
  return {segment.data(), segment.size()};
}

Board::Board(Couple& pair, const Memory& local_memory, const Memory& remote_memory)
    : local(must(pair.a.add(local_memory))),
      remote(must(pair.b.add(remote_memory))),
      grant(must(remote.grant({}, Rights::read_write))),
      there(must(pair.a.import(grant.blob()))),
      pair_(pair) {
  repaint();
}

Board::Board(Couple& pair, std::size_t local_bytes, std::size_t remote_bytes, Rights rights)
    : local(must(pair.a.add(Memory::own(local_bytes)))),
      remote(must(pair.b.add(Memory::own(remote_bytes)))),
      grant(must(remote.grant({}, rights))),
      there(must(pair.a.import(grant.blob()))),
      pair_(pair) {
  repaint();
}

void Board::repaint() {
  fill(bytes_of(local), next_seed++);
  fill(bytes_of(remote), next_seed++);
  local_picture_.assign(bytes_of(local).begin(), bytes_of(local).end());
  remote_picture_.assign(bytes_of(remote).begin(), bytes_of(remote).end());
}

Result<Transfer> Board::submit(Direction direction, std::span<const Pair> pairs,
                               const TransferOptions& options) {
  return direction == Direction::write ? pair_.a.write(local, there, pairs, options)
                                       : pair_.a.read(local, there, pairs, options);
}

void Board::expect_moved(Direction direction, std::span<const Pair> pairs,
                         const TransferOptions& options) {
  auto transfer = submit(direction, pairs, options);
  ASSERT_TRUE(succeeds(transfer));
  ASSERT_TRUE(succeeds(transfer->wait_quiescent(soon())));
  EXPECT_EQ(transfer->state(), State::done);
  const Report report = transfer->report();
  EXPECT_EQ(report.bytes_done, report.bytes);
  expect_pieces(direction, pairs);
}

void Board::expect_pieces(Direction direction, std::span<const Pair> pairs) {
  Blob& written = direction == Direction::write ? remote_picture_ : local_picture_;
  const Blob& source = direction == Direction::write ? local_picture_ : remote_picture_;
  written = expected_after(written, source, direction, pairs);
  expect_untouched();
}

void Board::expect_written_back(const Pair& piece) {
  const Grant back = must(local.grant({}, Rights::read_write));
  const Remote here = must(pair_.b.import(back.blob()));
  const std::byte* from = remote.data() + piece.local;
  const Blob source(from, from + piece.length);
  ASSERT_TRUE(succeeds(must(pair_.b.write(remote, here, std::span(&piece, 1))).wait(soon())));
  EXPECT_TRUE(same_bytes(Bytes(local.data() + piece.remote, piece.length), source));
}

void Board::expect_untouched() {
  EXPECT_TRUE(same_bytes(bytes_of(local), local_picture_)) << "on the local side";
  EXPECT_TRUE(same_bytes(bytes_of(remote), remote_picture_)) << "on the remote side";
}

Pump::Pump(Engine& engine)
    : thread_([this, &engine] {
        while (!stop_) {
          if (!engine.progress()) return;
          std::this_thread::yield();
        }
      }) {}

Pump::~Pump() {
  stop_ = true;
  thread_.join();
}

bool has_ipv6() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return can_bind(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace weft::test
