// What the calls of calls.py cost in C++: the median of many, as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "weft-perf/protocol/must.hpp"

using namespace weft;
using namespace weft::perf;
using namespace std::chrono_literals;

namespace {

/// Nanoseconds.
template <typename Work>
double median(int rounds, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    work();
    times.push_back(static_cast<double>(Nanoseconds(Clock::now() - begin).count()));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds) / 2];
}

void measure(const std::string& provider, int rounds) {
  Config config;
  config.providers = {provider};
  Engine b = must(Engine::open(config)), a = must(Engine::open(config));
  must(a.connect(b.address(), Deadline::in(10s)));
  constexpr std::size_t page = 4096, pages = 4096, listed = 1'000'000;
  Segment mine = must(a.add(Memory::shared(page * pages)));
  Segment yours = must(b.add(Memory::shared(page * pages)));
  Grant grant = must(yours.grant({}, Rights::write));
  const Remote remote = must(a.import(grant.blob()));

  const Pair one[] = {{0, 0, page}};
  const Prepared prepared = must(a.prepare(mine, remote, Direction::write, one));
  const TransferOptions latency = {.priority = Priority::latency};
  const auto submit = [&] { must(must(a.submit(prepared, latency)).wait(Deadline::in(10s))); };
  const auto write = [&] {
    must(must(a.write(mine, remote, one, latency)).wait(Deadline::in(10s)));
  };
  median(rounds / 10, submit);
  const double submitted = median(rounds, submit), written = median(rounds, write);

  std::vector<Pair> pairs;
  std::vector<std::uint32_t> from, to;
  for (std::uint64_t i = 0; i < listed; ++i) {
    pairs.push_back({i * 7 % pages * page, i * 5 % pages * page, 1});
    from.push_back(static_cast<std::uint32_t>(i * 7 % pages));
    to.push_back(static_cast<std::uint32_t>(i * 5 % pages));
  }
  const double million_pairs = median(
      9, [&] { must(a.prepare(mine, remote, Direction::write, std::span<const Pair>(pairs))); });
  const double million_pages = median(9, [&] {
    must(a.prepare(mine, remote, Direction::write, Paged{page, 0, page, 0, page, from, to}));
  });
  fmt::print(
      R"({{"submit 4 KiB": {}, "write 4 KiB": {}, "prepare 1e6 pieces": {}, "prepare 1e6 pages": {}}})"
      "\n",
      submitted, written, million_pairs, million_pages);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(argc > 1 ? argv[1] : "shm", argc > 2 ? std::stoi(argv[2]) : 20'000);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
