// What callgrind counts over a NIC, be it a simulated one: writes by a plain libfabric loop, as
// fabtests' fi_rma_bw makes them, and the same by an engine. Only what runs within measured_loop()
// is looked at, or idle_loop().
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/engine.hpp>

#include "protocol/must.hpp"
#include "raw/process.hpp"
#include "raw/side.hpp"

namespace {

using weft::Deadline;
using weft::Engine;
using weft::perf::must;

enum class Way : std::uint8_t { plain, engine };

struct Options {
  Way way = Way::plain;
  bool serve = false, idle = false;
  std::string target;  // the address of an engine that serves
  std::string provider = "efa";
  std::size_t size = 16 << 10;
  unsigned pieces = 1;  // of a transfer, each of them `size` bytes and an operation by itself
  unsigned window = 1;
  unsigned transfers = 200;
};

constexpr auto patience = std::chrono::seconds(60);
constexpr unsigned most_idle = 100'000;  // 20 s and more, see nap()

/// Writes to places, each of which is in flight once at a time.
class Writer {
 public:
  struct Seen {
    unsigned ended = 0;   // writes
    bool worked = false;  // something has happened
  };
  virtual ~Writer() = default;
  /// False if there is no room for it.
  virtual bool post(unsigned place) = 0;
  virtual Seen look() = 0;
};

/// By libfabric alone.
class PlainWriter final : public Writer {
 public:
  explicit PlainWriter(const weft::perf::RawConfig& config)
      : config_(config),
        memory_(config.window * config.size),
        endpoint_(config_, 0, config.initiator, "", memory_.span()),
        posted_(config.window),
        target_(must(weft::perf::RawProcess::start(config, weft::perf::RawProcess::Role::target))) {
    const auto there = must(target_->ask({{"step", "open"}}));
    must(target_->ask(
        {{"step", "connect"}, {"endpoints", nlohmann::json::array({endpoint_.describe()})}}));
    endpoint_.connect(there.at("endpoints").at(0));
  }
  bool post(unsigned place) override {
    return endpoint_.move(posted_[place], place * config_.size, config_.size);
  }
  Seen look() override {
    const auto ended = static_cast<unsigned>(endpoint_.reap([](const weft::perf::Posted&) {}));
    return {ended, ended > 0};
  }

 private:
  const weft::perf::RawConfig config_;
  weft::perf::PatternedMemory memory_;
  weft::perf::Endpoint endpoint_;
  std::vector<weft::perf::Posted> posted_;
  const std::unique_ptr<weft::perf::RawProcess> target_;
};

weft::Config engine_config(const Options& options) {
  weft::Config config;
  config.providers = {options.provider};
  config.rails = 1;
  // Valgrind runs one thread at a time: heartbeats may be late.
  config.heartbeat = std::chrono::seconds(10);
  config.death_after = std::chrono::minutes(1);
  return config;
}

/// No two pieces are neighbours, so that none become one.
weft::Strided pieces_of(const Options& options) {
  return {{0, 0, options.size},
          std::uint64_t{options.window} * options.pieces,
          2 * options.size,
          2 * options.size};
}

weft::Segment add_memory(Engine& engine, const Options& options) {
  const weft::Strided pieces = pieces_of(options);
  return must(engine.add(weft::Memory::own(pieces.count * pieces.local_stride)));
}

/// By an engine. A place is a transfer of several pieces.
class EngineWriter final : public Writer {
 public:
  explicit EngineWriter(const Options& options)
      : options_(options),
        engine_(must(Engine::open(config(options)))),
        segment_(add_memory(engine_, options)),
        prepared_(prepare()) {
    picks_.resize(std::size_t{options.window} * options.pieces);
    std::iota(picks_.begin(), picks_.end(), 0U);
  }
  bool post(unsigned place) override {
    const auto picks = std::span<const std::uint32_t>(picks_).subspan(
        std::size_t{place} * options_.pieces, options_.pieces);
    flying_.push_back(must(engine_.submit(prepared_, picks)));
    return true;
  }
  Seen look() override {
    Seen seen{0, must(engine_.progress()) > 0};
    for (; !flying_.empty() && flying_.front().state() != weft::State::active; ++seen.ended) {
      if (flying_.front().state() != weft::State::done)
        throw std::runtime_error("a write has failed");
      flying_.pop_front();
    }
    return seen;
  }

 private:
  static weft::Config config(const Options& options) {
    weft::Config config = engine_config(options);
    config.listen = "";
    config.progress = weft::Progress::manual;
    return config;
  }
  weft::Prepared prepare() {
    const Deadline deadline = Deadline::in(patience);
    const weft::Peer peer = must(engine_.connect(options_.target, deadline));
    const weft::Remote remote = must(engine_.lookup(peer, "target", deadline));
    return must(engine_.prepare(segment_, remote, weft::Direction::write, pieces_of(options_)));
  }

  const Options options_;
  Engine engine_;
  weft::Segment segment_;
  weft::Prepared prepared_;
  std::vector<std::uint32_t> picks_;
  std::deque<weft::Transfer> flying_;
};

/// The NIC that an engine takes, and the way to it.
weft::perf::RawNic nic_of_engine(const Options& options) {
  const Engine engine = must(Engine::open(engine_config(options)));
  for (const weft::Candidate& each : engine.info().candidates)
    if (each.taken && each.is_nic) return {each.domain, each.fabric};
  throw std::runtime_error("there is no NIC of this provider");
}

weft::perf::RawConfig raw_config(const Options& options) {
  weft::perf::RawConfig config;
  config.provider = options.provider;
  config.nics = {nic_of_engine(options)};
  config.size = options.size;
  config.window = config.endpoint_window = options.window;
  return config;
}

std::unique_ptr<Writer> writer_of(const Options& options) {
  if (options.way != Way::plain) return std::make_unique<EngineWriter>(options);
  return std::make_unique<PlainWriter>(raw_config(options));
}

/// Grants its memory until its standard input ends.
void serve(const Options& options) {
  Engine engine = must(Engine::open(engine_config(options)));
  weft::Segment segment = add_memory(engine, options);
  const weft::Grant grant = must(segment.grant({}, weft::Rights::write));
  must(engine.publish("target", grant));
  fmt::print("{}\n", engine.address());
  std::fflush(stdout);
  char none = 0;
  [[maybe_unused]] const ssize_t ended = ::read(STDIN_FILENO, &none, 1);
}

/// The NIC gets its time: what it takes is not counted.
void nap() {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

/// Keeps `window` writes in flight until `count` have ended; returns how many looks found nothing.
unsigned move(Writer& writer, unsigned window, unsigned count) {
  unsigned posted = 0, ended = 0, idle = 0;
  while (ended < count) {
    while (posted < count && posted - ended < window && writer.post(posted % window)) ++posted;
    const Writer::Seen seen = writer.look();
    ended += seen.ended;
    if (seen.worked) continue;
    if (++idle > most_idle) throw std::runtime_error("no write ends");
    nap();
  }
  return idle;
}

}  // namespace

/// What is counted.
extern "C" [[gnu::noinline]] unsigned measured_loop(Writer& writer, unsigned window,
                                                    unsigned count) {
  return move(writer, window, count);
}

/// Looks that find nothing.
extern "C" [[gnu::noinline]] unsigned idle_loop(Writer& writer, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    writer.look();
    nap();
  }
  return count;
}

namespace {

/// Prints how many looks of those that were counted found nothing.
void run(const Options& options) {
  if (options.serve) return serve(options);
  const auto writer = writer_of(options);
  move(*writer, options.window, 2 * options.window);
  fmt::print("{}\n", options.idle ? idle_loop(*writer, options.transfers)
                                  : measured_loop(*writer, options.window, options.transfers));
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = weft::perf::serve_raw_side(argc, argv)) return *status;
  Options options;
  CLI::App app{"Writes over a NIC, by libfabric alone or by an engine, for callgrind to count"};
  app.option_defaults()->always_capture_default();
  const std::map<std::string, Way> ways{{"plain", Way::plain}, {"engine", Way::engine}};
  app.add_option("--way", options.way, "plain, engine (driven by the caller)")
      ->transform(CLI::Transformer(ways));
  app.add_flag("--serve", options.serve, "Be the engine that is written to; prints its address");
  app.add_option("--target", options.target, "Address of the engine that serves");
  app.add_option("--provider", options.provider, "As libfabric names it");
  app.add_option("--size", options.size, "Bytes of a write")->transform(CLI::AsSizeValue(false));
  app.add_option("--pieces", options.pieces, "Writes in a transfer of the engine's");
  app.add_option("--window", options.window, "Transfers in flight");
  app.add_option("--transfers", options.transfers, "How many are counted");
  app.add_flag("--idle", options.idle, "Count looks that find nothing instead");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-fabric-loop: {}\n", error.what());
    return 1;
  }
}
