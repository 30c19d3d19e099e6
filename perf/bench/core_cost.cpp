// What the engine itself costs, apart from any fabric: per posted operation, per block coalesced,
// per chunk cut. The null transport takes every chunk and completes it at the next progress().
#include <benchmark/benchmark.h>

#include <numeric>
#include <random>

#include "bench.hpp"
#include "shared/null_scheduler.hpp"

namespace weft::core {
namespace {

constexpr std::uint64_t block = 4096;

std::vector<Pair> scattered(std::size_t count) {
  std::vector<Pair> pairs(count);
  // Every other block, so that none has a neighbour.
  for (std::size_t i = 0; i < count; ++i) pairs[i] = {i * 2 * block, i * 2 * block, block};
  std::shuffle(pairs.begin(), pairs.end(), std::mt19937_64(1));
  return pairs;
}

void posted_operation(benchmark::State& state) {
  perf::NullScheduler bench;
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto prepared = bench.prepare(PieceList(scattered(count)), count * block);
  for (auto _ : state) bench.run(*bench.submit(prepared));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}
BENCHMARK(posted_operation)->Arg(1)->Arg(16)->Arg(4096)->Name("post_4KiB_operations");

void coalesce(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<Pair> pairs(count);
  for (std::size_t i = 0; i < count; ++i) pairs[i] = {i * block, i * block, block};
  const PieceList pieces{std::span<const Pair>(pairs)};
  for (auto _ : state) {
    Cursor cursor(pieces, {});
    while (const auto chunk = cursor.next(std::uint64_t{512} << 10))
      benchmark::DoNotOptimize(chunk->length);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}
BENCHMARK(coalesce)->Arg(100'000)->Name("coalesce_blocks");

void cut(benchmark::State& state) {
  const std::uint64_t bytes = std::uint64_t{64} << 30;
  const Pair whole{0, 0, bytes};
  const PieceList pieces{std::span(&whole, 1)};
  std::int64_t chunks = 0;
  for (auto _ : state) {
    Cursor cursor(pieces, {});
    while (const auto chunk = cursor.next(std::uint64_t{512} << 10)) {
      benchmark::DoNotOptimize(chunk->length);
      ++chunks;
    }
  }
  state.SetItemsProcessed(chunks);
}
BENCHMARK(cut)->Name("cut_chunks");

void check(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const PieceList pieces{std::span<const Pair>(scattered(count))};
  const std::vector<Range> ranges{{0, std::uint64_t{1} << 40}};
  for (auto _ : state)
    benchmark::DoNotOptimize(check_pieces(pieces, {std::uint64_t{1} << 40, ranges}));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}
BENCHMARK(check)->Arg(100'000)->Name("check_pieces");

/// Posting while so many transfers, none of which ever ends, wait for their turns: with one
/// deadline for all, so that they take turns, or each with its own.
void queued(benchmark::State& state, bool one_deadline) {
  perf::NullScheduler bench;
  const Strided endless{{0, 0, block}, std::uint64_t{1} << 30, 2 * block, 2 * block};
  const auto prepared = bench.prepare(PieceList(endless), std::uint64_t{1} << 42);
  const Deadline deadline = Deadline::in(std::chrono::hours(1));
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    transfers.push_back(bench.submit(
        prepared, one_deadline ? deadline : Deadline::at(deadline.when() + Nanoseconds(i))));
  std::int64_t posted = 0;
  for (auto _ : state) {
    posted += static_cast<std::int64_t>(bench.scheduler.pump());
    bench.null.progress();
  }
  state.SetItemsProcessed(posted);
  for (const auto& each : transfers)
    each->end_early(State::cancelled, Error(Code::cancelled, "measured"));
}
BENCHMARK_CAPTURE(queued, one_deadline, true)->Arg(1)->Arg(1'000)->Arg(50'000);
BENCHMARK_CAPTURE(queued, own_deadlines, false)->Arg(1)->Arg(1'000)->Arg(50'000);

/// Transfers of one block each: queued all at once, then carried.
void drained(benchmark::State& state) {
  perf::NullScheduler bench;
  const Pair whole{0, 0, block};
  const auto prepared = bench.prepare(PieceList(std::span(&whole, 1)), block);
  for (auto _ : state) {
    std::shared_ptr<TransferState> last;
    for (std::int64_t i = 0; i < state.range(0); ++i) last = bench.submit(prepared);
    while (bench.scheduler.has_work()) {
      bench.scheduler.pump();
      bench.null.progress();
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(drained)->Arg(1)->Arg(1'000)->Arg(50'000)->Name("queue_and_carry");

/// One look at a rail to a peer that takes nothing any more, with so many transfers waiting.
void frozen(benchmark::State& state) {
  perf::NullScheduler bench;
  const Strided endless{{0, 0, block}, std::uint64_t{1} << 30, 2 * block, 2 * block};
  const auto prepared = bench.prepare(PieceList(endless), std::uint64_t{1} << 42);
  std::vector<std::shared_ptr<TransferState>> transfers;
  for (std::int64_t i = 0; i < state.range(0); ++i) transfers.push_back(bench.submit(prepared));
  bench.scheduler.pump();
  for (auto _ : state) benchmark::DoNotOptimize(bench.scheduler.pump());
  for (const auto& each : transfers)
    each->end_early(State::cancelled, Error(Code::cancelled, "measured"));
  bench.null.progress();
}
BENCHMARK(frozen)->Arg(1)->Arg(1'000)->Arg(50'000)->Name("look_at_frozen_peer");

}  // namespace
}  // namespace weft::core

int weft::perf::bench::core_cost(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return usage_error;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
