#include "raw/side.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/pattern.hpp"
#include "raw/usage.hpp"

namespace weft::perf {
namespace {

/// Of answers; the other bits tell which message of the endpoint's window it is.
constexpr std::uint64_t answer_tag = std::uint64_t{1} << 32;

constexpr std::uint64_t pattern_seed = 0;

/// Runs `work(endpoint)` on a thread for each, and throws what the first of them threw.
class Workers {
 public:
  /// `on_failure`: called, on the thread that failed, after the first of them has.
  void start(
      std::vector<std::unique_ptr<Endpoint>>& endpoints, const std::function<void(Endpoint&)>& work,
      const std::function<void()>& on_failure = [] {}) {
    for (auto& endpoint : endpoints) {
      threads_.emplace_back([this, &endpoint = *endpoint, work, on_failure] {
        try {
          work(endpoint);
        } catch (...) {
          note(std::current_exception());
          on_failure();
        }
      });
    }
  }
  void join() {
    threads_.clear();
    if (error_) std::rethrow_exception(error_);
  }
  std::atomic<bool> failed{false};

 private:
  void note(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed = true;
  }

  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::string shm_name(int pid, unsigned endpoint) {
  return fmt::format("weft_raw_{}_{}", pid, endpoint);
}

PatternedMemory::PatternedMemory(std::size_t bytes) : pages_(bytes) {
  if (pages_.empty()) throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
}

void PatternedMemory::fill(bool patterned) {
  if (!patterned) return void(std::memset(span().data(), 0, span().size()));
  tool::pattern(pattern_seed, 0, span());
}

void PatternedMemory::expect_pattern(std::size_t offset, std::size_t length) const {
  if (offset > span().size() || length > span().size() - offset)
    throw std::runtime_error("more was moved than there is room for");
  const auto wrong = tool::difference(span().subspan(offset, length), pattern_seed, offset);
  if (wrong.count > 0)
    throw std::runtime_error(fmt::format("wrong bytes at offset {} of {}", wrong.first, length));
}

/// An operation that is under way: a message until both it and its answer have completed.
struct RawSide::Flying {
  struct Part : Posted {
    Flying* of = nullptr;
  };
  Part sent, answered;
  std::uint64_t number = 0;  // in the endpoint's window
  unsigned parts = 0;        // that have not completed
  bool listening = false;  // The answer's receive was posted before there was room for the message.
  Chunks::Counter* counter = nullptr;
  Clock::time_point begun = {};
};

/// The receive of a message, and which one of the endpoint's window that is.
struct RawSide::Receipt : Posted {
  std::uint64_t number = 0;
  bool listening = false;
  bool heard = false;  ///< Ever.
};

RawSide::RawSide(const RawConfig& config, bool initiator)
    : config_(config), memory_(positions_of(config) * config.size) {
  memory_.fill(initiator != (config.operation == RawOperation::read));
  for (unsigned i = 0; i < config.endpoints; ++i)
    endpoints_.push_back(std::make_unique<Endpoint>(config_, i,
                                                    initiator ? config.initiator : config.target,
                                                    shm_name(::getpid(), i), memory_.span()));
}

nlohmann::json RawSide::describe() const {
  auto all = nlohmann::json::array();
  for (const auto& endpoint : endpoints_) all.push_back(endpoint->describe());
  return all;
}

void RawSide::connect(const nlohmann::json& other) {
  for (std::size_t i = 0; i < endpoints_.size(); ++i) endpoints_[i]->connect(other.at(i));
}

RawResult RawSide::initiate() {
  const std::chrono::milliseconds time(config_.max_ms);
  pass(time / 5);
  RawResult result = pass(time);
  if (config_.verify && config_.operation == RawOperation::read)
    memory_.expect_pattern(0, result.covered);
  return result;
}

RawResult RawSide::pass(std::chrono::milliseconds time) {
  Chunks chunks(config_, time);
  Workers workers;
  const double cpu_before = cpu_seconds();
  const auto start = Clock::now();
  workers.start(endpoints_, [&](Endpoint& endpoint) { drive(endpoint, chunks, workers.failed); });
  workers.join();
  const std::chrono::duration<double> took = Clock::now() - start;
  const Histogram latency = std::exchange(latency_, Histogram());
  const std::uint64_t bytes = chunks.transfers() * config_.size;
  return {
      .bytes = bytes,
      .operations = chunks.count(),
      .seconds = took.count(),
      .initiator_cpu_seconds = cpu_seconds() - cpu_before,
      .gigabytes_per_second = double(bytes) / took.count() * 1e-9,
      .p50_ns = std::uint64_t(latency.quantile(0.5).count()),
      .p99_ns = std::uint64_t(latency.quantile(0.99).count()),
      .covered = std::min<std::size_t>(chunks.transfers(), positions_of(config_)) * config_.size};
}

/// False if a queue is full; to be tried again with the same.
bool RawSide::begin(Endpoint& endpoint, Flying& flying, const Chunks::Chunk& chunk) const {
  if (!is_message()) {
    flying.parts = 1;
    return endpoint.move(flying.sent, chunk.offset, chunk.length);
  }
  flying.parts = 2;
  flying.listening =
      flying.listening || endpoint.receive(flying.answered, 0, 0, answer_tag | flying.number);
  if (!flying.listening ||
      !endpoint.send(flying.sent, place_of(endpoint, flying.number), chunk.length, flying.number))
    return false;
  flying.listening = false;
  return true;
}

void RawSide::drive(Endpoint& endpoint, Chunks& chunks, const std::atomic<bool>& failed) {
  const auto now = [&] { return config_.latencies ? Clock::now() : Clock::time_point(); };
  std::vector<Flying> operations(config_.endpoint_window);
  std::vector<Flying*> free;
  for (Flying& each : operations) {
    each.sent.of = each.answered.of = &each;
    each.number = static_cast<std::uint64_t>(&each - operations.data());
    free.push_back(&each);
  }
  Histogram latency;
  const auto take_end = [&](Posted& posted) {
    auto& part = static_cast<Flying::Part&>(posted);
    Flying& of = *part.of;
    if (&part == (is_message() ? &of.answered : &of.sent)) {
      if (config_.latencies) latency.add(Clock::now() - of.begun);
      of.counter->fetch_add(1);
    }
    if (--of.parts == 0) free.push_back(&of);
  };
  const auto patience = std::chrono::milliseconds(config_.timeout_ms);
  Deadline stalled = Deadline::in(patience);
  bool waits = false;  // for what it had not when it looked last
  auto chunk = chunks.take();
  Flying* next = nullptr;  // What `chunk` is to be posted as, once that was tried.
  while (chunk || free.size() < operations.size()) {
    while (chunk && (next != nullptr || !free.empty()) && chunks.open(*chunk)) {
      if (next == nullptr) {
        next = free.back();
        free.pop_back();
        next->counter = &chunks.counter(*chunk);
        next->begun = now();
      }
      if (!begin(endpoint, *next, *chunk)) break;
      next = nullptr;
      chunk = chunks.take();
    }
    if (endpoint.reap(take_end) > 0) {
      waits = false;
      continue;
    }
    if (failed) return;
    if (!std::exchange(waits, true)) stalled = Deadline::in(patience);
    if (stalled.passed())
      throw std::runtime_error(fmt::format("{} operations of an endpoint did not complete in time",
                                           operations.size() - free.size()));
    // A chunk that waits for completions of other endpoints has nothing here to sleep for.
    free.size() < operations.size() ? endpoint.idle() : std::this_thread::yield();
  }
  const std::lock_guard lock(latency_mutex_);
  latency_.add(latency);
}

double RawSide::serve(const std::function<std::size_t()>& wait,
                      const std::function<void()>& interrupt) {
  std::atomic<bool> stop{false};
  Workers workers;
  const double cpu_before = cpu_seconds();
  const auto work = [&](Endpoint& endpoint) {
    is_message() ? serve_messages(endpoint, stop) : serve_moves(endpoint, stop);
  };
  workers.start(endpoints_, work, interrupt);
  std::size_t covered = 0;
  try {
    covered = wait();
  } catch (...) {
    stop = true;
    workers.join();
    throw;
  }
  stop = true;
  workers.join();
  const double cpu = cpu_seconds() - cpu_before;
  if (config_.verify && config_.operation == RawOperation::write)
    memory_.expect_pattern(0, covered);
  return cpu;
}

void RawSide::serve_moves(Endpoint& endpoint, const std::atomic<bool>& stop) {
  while (!stop)
    if (endpoint.reap([](Posted&) {}) == 0) endpoint.idle();
}

/// Each message of the window comes again once it has been answered.
void RawSide::serve_messages(Endpoint& endpoint, const std::atomic<bool>& stop) const {
  std::vector<Receipt> receipts(config_.endpoint_window);
  std::vector<Receipt*> due;  // to be posted, and those that were heard to be answered then
  for (Receipt& each : receipts) {
    each.number = static_cast<std::uint64_t>(&each - receipts.data());
    due.push_back(&each);
  }
  const auto attend = [&](Receipt& to) {
    to.listening = to.listening ||
                   endpoint.receive(to, place_of(endpoint, to.number), config_.size, to.number);
    return to.listening && (!to.heard || endpoint.send_empty(answer_tag | to.number));
  };
  while (!stop) {
    while (!due.empty() && attend(*due.back())) due.pop_back();
    const auto count = endpoint.reap([&](Posted& posted) {
      auto& receipt = static_cast<Receipt&>(posted);
      receipt.listening = false;
      receipt.heard = true;
      due.push_back(&receipt);
    });
    if (count == 0 && due.empty()) endpoint.idle();
  }
  if (config_.verify) look_at(endpoint, receipts);
}

/// What came last for each.
void RawSide::look_at(const Endpoint& endpoint, const std::vector<Receipt>& receipts) const {
  for (const Receipt& each : receipts)
    if (each.heard) memory_.expect_pattern(place_of(endpoint, each.number), config_.size);
}

}  // namespace weft::perf
