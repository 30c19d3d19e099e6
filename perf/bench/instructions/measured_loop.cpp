// What callgrind counts: transfers through a whole engine over rails that move nothing. Only what
// runs within measured_loop() is looked at, so that neither opening nor meeting is counted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <weft/engine.hpp>

#include "shared/null_endpoint.hpp"

namespace {

using weft::Deadline;
using weft::Engine;
using weft::Result;

struct Options {
  std::uint32_t pieces = 1;
  std::uint32_t transfers = 1000;
};

constexpr std::uint64_t piece = 4096;

}  // namespace

/// One transfer after the other, each driven to its end by the caller. Named for callgrind's
/// toggle.
extern "C" [[gnu::noinline]] bool measured_loop(Engine& engine, const weft::Prepared& prepared,
                                                std::uint32_t transfers) {
  for (std::uint32_t i = 0; i < transfers; ++i) {
    auto transfer = engine.submit(prepared);
    if (!transfer) return false;
    while (transfer->state() == weft::State::active)
      if (!engine.progress()) return false;
    if (transfer->state() != weft::State::done) return false;
  }
  return true;
}

namespace {

Result<void> run(const Options& options) {
  const Deadline deadline = Deadline::in(std::chrono::minutes(2));
  // No two pieces are neighbours: each is an operation.
  const weft::Strided pieces{{0, 0, piece}, options.pieces, 2 * piece, 2 * piece};
  weft::Config config;
  config.providers = {"tcp"};
  config.rails = 1;
  config.progress = weft::Progress::manual;
  // Valgrind runs one thread at a time: heartbeats may be late.
  config.heartbeat = std::chrono::seconds(10);
  config.death_after = std::chrono::minutes(1);
  auto owner = weft::perf::open_over_nothing(config);
  if (!owner) return weft::fail(std::move(owner.error()));
  auto engine = weft::perf::open_over_nothing(config);
  if (!engine) return weft::fail(std::move(engine.error()));
  auto theirs = owner->add(weft::Memory::own(pieces.count * pieces.remote_stride));
  if (!theirs) return weft::fail(std::move(theirs.error()));
  auto ours = engine->add(weft::Memory::own(pieces.count * pieces.local_stride));
  if (!ours) return weft::fail(std::move(ours.error()));
  auto grant = theirs->grant({}, weft::Rights::write);
  if (!grant) return weft::fail(std::move(grant.error()));
  auto prepared = engine->connect(owner->address(), deadline)
                      .and_then([&](const weft::Peer&) { return engine->import(grant->blob()); })
                      .and_then([&](const weft::Remote& remote) {
                        return engine->prepare(*ours, remote, weft::Direction::write, pieces);
                      });
  if (!prepared) return weft::fail(std::move(prepared.error()));
  auto warm = engine->submit(*prepared);
  if (!warm) return weft::fail(std::move(warm.error()));
  if (auto ended = warm->wait(deadline); !ended) return ended;
  if (!measured_loop(*engine, *prepared, options.transfers))
    return weft::fail(weft::Code::internal, "a transfer over nothing has failed");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Transfers through an engine over rails that move nothing, for callgrind to count"};
  app.option_defaults()->always_capture_default();
  app.add_option("--pieces", options.pieces, "Pieces of a transfer, each an operation of its own")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--transfers", options.transfers, "How many are counted")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto ended = run(options);
  if (ended) return 0;
  fmt::print(stderr, "weft-instructions-loop: {}\n", ended.error().to_string());
  return 1;
}
