#include "shared/engine_loop.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <future>
#include <numeric>
#include <vector>
#include <weft/engine.hpp>

#include "shared/sides.hpp"

namespace weft::perf {
namespace {

Config engine_config(const EngineConfig& config) {
  Config made;
  made.providers = {config.provider};
  made.rails = config.rails;
  made.chunk_bytes = config.chunk;
  made.window = config.rail_window;
  made.transport = config.transport;
  return made;
}

/// Where the pieces of all transfers lie. Those that lie apart can't become one.
Strided pieces_of(const EngineConfig& config) {
  const std::size_t piece = config.size / config.pieces;
  const std::size_t stride = config.pieces > 1 ? 2 * piece : piece;
  const std::uint64_t transfers = std::uint64_t{config.callers} * config.window;
  return {{0, 0, piece}, transfers * config.pieces, stride, stride};
}

/// A segment with room for them, of which no page is new any more.
Result<Segment> add_memory(Engine& engine, const EngineConfig& config,
                           const std::function<Result<Memory>(std::size_t)>& memory) {
  const Strided pieces = pieces_of(config);
  auto segment = memory(pieces.count * pieces.local_stride).and_then([&](const Memory& made) {
    return engine.add(made);
  });
  if (segment && segment->data() != nullptr) std::memset(segment->data(), 1, segment->size());
  return segment;
}

/// Grants its memory, tells where, and lives until `life` is closed.
Result<void> target(const EngineConfig& config, int answer, int life) {
  auto engine = Engine::open(engine_config(config));
  if (!engine) return fail(std::move(engine.error()));
  auto segment = add_memory(*engine, config, config.target_memory);
  if (!segment) return fail(std::move(segment.error()));
  return segment->grant({}, Rights::read_write, config.ttl)
      .and_then([&](const Grant& grant) { return engine->publish("target", grant); })
      .map([&] {
        write_line(answer, engine->address());
        wait_for_end(life);
      });
}

/// Keeps `window` transfers in flight, each over its own part of the memory.
Result<std::uint64_t> stream(Engine& engine, const Prepared& parts, const EngineConfig& config,
                             unsigned caller, Deadline until) {
  std::vector<std::uint32_t> all(std::size_t{config.window} * config.pieces);
  std::iota(all.begin(), all.end(), static_cast<std::uint32_t>(caller * all.size()));
  std::deque<std::pair<std::uint32_t, Transfer>> flying;
  std::uint64_t count = 0;
  const auto launch = [&](std::uint32_t part) -> Result<void> {
    const auto picks = std::span<const std::uint32_t>(all).subspan(
        std::size_t{part} * config.pieces, config.pieces);
    auto transfer = engine.submit(parts, picks);
    if (!transfer) return fail(std::move(transfer.error()));
    flying.emplace_back(part, std::move(*transfer));
    return {};
  };
  for (std::uint32_t part = 0; part < config.window; ++part)
    if (auto launched = launch(part); !launched) return fail(std::move(launched.error()));
  while (!flying.empty()) {
    auto [part, transfer] = std::move(flying.front());
    flying.pop_front();
    if (auto ended = transfer.wait(Deadline::in(std::chrono::seconds(30))); !ended)
      return fail(std::move(ended.error()));
    ++count;
    if (until.passed()) continue;
    if (auto launched = launch(part); !launched) return fail(std::move(launched.error()));
  }
  return count;
}

/// The same by all callers at a time.
Result<std::uint64_t> streams(Engine& engine, const Prepared& parts, const EngineConfig& config,
                              Deadline until) {
  std::vector<std::future<Result<std::uint64_t>>> others;
  for (unsigned caller = 1; caller < config.callers; ++caller)
    others.push_back(std::async(
        std::launch::async, [&, caller] { return stream(engine, parts, config, caller, until); }));
  auto count = stream(engine, parts, config, 0, until);
  for (auto& each : others)
    if (const auto other = each.get(); !other)
      count = other;
    else if (count)
      *count += *other;
  return count;
}

double cpu_seconds_of_process() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

Result<Initiator> Initiator::open(const EngineConfig& config, const std::string& address) {
  const Deadline deadline = Deadline::in(config.timeout);
  Config settings = engine_config(config);
  settings.listen = "";
  settings.progress = config.manual ? Progress::manual : Progress::threads;
  auto engine = config.open(settings);
  if (!engine) return fail(std::move(engine.error()));
  auto segment = add_memory(*engine, config, config.initiator_memory);
  if (!segment) return fail(std::move(segment.error()));
  auto remote = engine->connect(address, deadline).and_then([&](const Peer& peer) {
    return peer.lookup("target", deadline);
  });
  if (!remote) return fail(std::move(remote.error()));
  auto parts = engine->prepare(*segment, *remote, config.read ? Direction::read : Direction::write,
                               pieces_of(config));
  if (!parts) return fail(std::move(parts.error()));
  return Initiator(config, std::move(*engine), std::move(*segment), std::move(*parts));
}

Result<EngineResult> Initiator::run(Nanoseconds time) {
  const auto begin = Clock::now();
  const double spent = cpu_seconds_of_process();
  auto count = streams(engine_, parts_, config_, Deadline::in(time));
  if (!count) return fail(std::move(count.error()));
  EngineResult result;
  result.bytes = *count * config_.size;
  result.cpu_seconds = cpu_seconds_of_process() - spent;
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.gigabytes_per_second = static_cast<double>(result.bytes) / result.seconds / 1e9;
  return result;
}

Result<std::string> run_against_target(
    const EngineConfig& config,
    const std::function<Result<std::string>(const std::string& address)>& initiator) {
  const Deadline deadline = Deadline::in(config.timeout);
  Pipe answer, life, result;
  const Side serving([&] {
    life.close_write();
    if (auto ended = target(config, answer.write_end(), life.read_end()); !ended)
      write_line(answer.write_end(), "error " + ended.error().to_string());
  });
  auto address = read_line(answer.read_end(), deadline);
  if (!address) return address;
  const Side asking([&] {
    const auto made = initiator(*address);
    write_line(result.write_end(), made ? *made : "error " + made.error().to_string());
  });
  return read_line(result.read_end(), deadline);
}

Result<EngineResult> run_engine(const EngineConfig& config) {
  const auto line = run_against_target(config, [&](const std::string& address) {
    return Initiator::open(config, address).and_then([&](Initiator initiator) {
      return initiator.run(config.time / 5)
          .and_then([&](const EngineResult&) { return initiator.run(config.time); })
          .map([](const EngineResult& made) {
            return fmt::format("{} {}", made.bytes, made.seconds);
          });
    });
  });
  if (!line) return fail(line.error());
  EngineResult made;
  unsigned long long bytes = 0;
  if (std::sscanf(line->c_str(), "%llu %lf", &bytes, &made.seconds) != 2)
    return fail(Code::internal, *line);
  made.bytes = bytes;
  made.gigabytes_per_second = static_cast<double>(bytes) / made.seconds / 1e9;
  return made;
}

}  // namespace weft::perf
