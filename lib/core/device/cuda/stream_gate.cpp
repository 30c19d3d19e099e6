#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <map>
#include <utility>
#include <vector>

#include "base/sync.hpp"
#include "device/allocation.hpp"
#include "device/cuda/gpu.hpp"
#include "device/cuda/vendor.hpp"

namespace weft::core::cuda {
namespace {

/// How many queues of work a context has (CUDA C++ Programming Guide, "CUDA Environment
/// Variables").
std::size_t queues_of_a_context() {
  constexpr int usual = 8, most = 32;
  const char* const set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int asked = set != nullptr ? std::atoi(set) : 0;
  return static_cast<std::size_t>(asked > 0 ? std::min(asked, most) : usual);
}

/// The streams of this process that wait for something of Weft's. A stream that waits keeps one of
/// its context's queues of work: where they keep all of them nothing else goes on, neither the
/// application's kernels nor the small copies by which Weft brings what they wait for (seen on an
/// H200: copies of up to 16 KiB into its memory, and all within it).
class WaitingStreams {
 public:
  static WaitingStreams& all() {
    static auto& streams = *new WaitingStreams;
    return streams;
  }
  /// One that waits already may wait for as much as it likes: it keeps no other queue.
  Result<void> enter(Context context, Stream stream) {
    const Lock lock(mutex_);
    auto& waiting = waiting_[context];
    if (!waiting.contains(stream) && waiting.size() >= most_)
      return fail(Code::queue_full,
                  fmt::format("{} streams wait already: one more could keep the GPU from all else "
                              "(CUDA_DEVICE_MAX_CONNECTIONS)",
                              waiting.size()));
    ++waiting[stream];
    return {};
  }
  void leave(Context context, Stream stream) {
    const Lock lock(mutex_);
    auto& waiting = waiting_[context];
    if (--waiting[stream] == 0) waiting.erase(stream);
  }

 private:
  const std::size_t most_ = std::max<std::size_t>(2, queues_of_a_context()) - 1;
  Mutex mutex_;
  // How often each.
  std::map<Context, std::map<Stream, std::size_t>> waiting_ WEFT_GUARDED_BY(mutex_);
};

/// Counts its stream among them until it is open.
class CountedGate final : public StreamGate {
 public:
  CountedGate(Context context, Stream stream, std::unique_ptr<StreamGate> gate)
      : context_(context), stream_(stream), gate_(std::move(gate)) {}
  ~CountedGate() override { CountedGate::open(); }
  void open() override {
    if (opened_.exchange(true)) return;
    gate_->open();
    WaitingStreams::all().leave(context_, stream_);
  }

 private:
  const Context context_;
  const Stream stream_;
  const std::unique_ptr<StreamGate> gate_;
  std::atomic<bool> opened_{false};
};

/// A word that a GPU looks at. Its value only grows, so that it can be used anew while streams have
/// not yet looked at what it was before.
struct GateWord {
  alignas(64) std::atomic<std::uint64_t> value{0};
  std::uint64_t last = 0;  // that a thread waits for, or has waited for
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The words of this process, pinned for all of its GPUs, and kept for as long as it lives: streams
/// outlive engines.
class GateWords {
 public:
  static GateWords& all() {
    static auto& words = *new GateWords;
    return words;
  }
  /// In the stream's context.
  Result<GateWord*> take(const Driver& driver) {
    const Lock lock(mutex_);
    if (free_.empty())
      if (auto grown = grow(driver); !grown) return fail(std::move(grown.error()));
    GateWord* word = free_.back();
    free_.pop_back();
    ++word->last;
    return word;
  }
  void put_back(GateWord& word) {
    const Lock lock(mutex_);
    free_.push_back(&word);
  }

 private:
  static constexpr std::size_t words_at_a_time = 256;

  Result<void> grow(const Driver& driver) WEFT_REQUIRES(mutex_) {
    auto pages = Allocation::make(Memory::own(words_at_a_time * sizeof(GateWord)));
    if (!pages) return fail(std::move(pages.error()));
    const Status status = driver.host_register(pages->address(), pages->size(),
                                               host_register_portable | host_register_device_map);
    if (status != success) return fail(driver.error("cuMemHostRegister", status));
    auto* const words = reinterpret_cast<GateWord*>(pages->address());
    for (std::size_t i = 0; i < words_at_a_time; ++i) free_.push_back(new (words + i) GateWord);
    pages_.push_back(std::move(*pages));
    return {};
  }

  Mutex mutex_;
  std::vector<Allocation> pages_ WEFT_GUARDED_BY(mutex_);
  std::vector<GateWord*> free_ WEFT_GUARDED_BY(mutex_);
};

class WordGate final : public StreamGate {
 public:
  WordGate(GateWord& word) : word_(&word), value_(word.last) {}
  ~WordGate() override { WordGate::open(); }
  void open() override {
    GateWord* const word = word_.exchange(nullptr);
    if (word == nullptr) return;
    word->value.store(value_, std::memory_order_seq_cst);
    GateWords::all().put_back(*word);
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::atomic<GateWord*> word_;
  const std::uint64_t value_;
};

/// Where streams can't wait for words: a thread of the driver's waits for the stream.
class HostGate final : public StreamGate {
 public:
  ~HostGate() override { HostGate::open(); }
  void open() override {
    if (!opened_.exchange(true)) latch_->count_down();
  }
  Status put_on(const Driver& driver, Stream stream) {
    auto* const held = new std::shared_ptr<std::latch>(latch_);
    const Status status = driver.launch_host_function(
        stream,
        [](void* argument) {
          const std::unique_ptr<std::shared_ptr<std::latch>> latch(
              static_cast<std::shared_ptr<std::latch>*>(argument));
          (*latch)->wait();
        },
        held);
    if (status != success) delete held;
    return status;
  }

 private:
  const std::shared_ptr<std::latch> latch_ = std::make_shared<std::latch>(1);
  std::atomic<bool> opened_{false};
};

/// `unsupported` where words can't be waited for.
Result<std::unique_ptr<StreamGate>> close_by_word(const Driver& driver, Stream stream) {
  if (driver.stream_wait_value == nullptr)
    return fail(Code::unsupported, "the driver has no cuStreamWaitValue64");
  const auto word = GateWords::all().take(driver);
  if (!word) return fail(word.error());
  auto gate = std::make_unique<WordGate>(**word);
  Address address = 0;
  if (const Status status = driver.host_device_pointer(&address, &(*word)->value, 0);
      status != success)
    return fail(driver.error("cuMemHostGetDevicePointer", status));
  const Status status =
      driver.stream_wait_value(stream, address, gate->value(), stream_wait_value_geq);
  if (status == success) return gate;
  Error error = driver.error("cuStreamWaitValue64", status);
  if (status == not_supported) error = Error(Code::unsupported, error.message());
  return fail(std::move(error));
}

Result<std::unique_ptr<StreamGate>> close_by_function(const Driver& driver, Stream stream) {
  auto gate = std::make_unique<HostGate>();
  if (const Status status = gate->put_on(driver, stream); status != success)
    return fail(driver.error("cuLaunchHostFunc", status));
  return gate;
}

Result<std::unique_ptr<StreamGate>> close_stream(const Driver& driver, Stream stream) {
  auto gate = close_by_word(driver, stream);
  if (gate || gate.error().code() != Code::unsupported) return gate;
  return close_by_function(driver, stream);
}

}  // namespace

Result<std::unique_ptr<StreamGate>> hold_stream(void* handle) {
  const Driver& driver = *Driver::present();
  const auto stream = static_cast<Stream>(handle);
  const OutsideCaptures outside(driver);
  Context context = nullptr;
  if (const Status status = driver.stream_context(stream, &context); status != success)
    return fail(driver.error("cuStreamGetCtx", status));
  const InContext here(driver, context);
  if (here.status() != success) return fail(driver.error("cuCtxPushCurrent", here.status()));
  int capturing = 0;
  if (const Status status = driver.stream_is_capturing(stream, &capturing); status != success)
    return fail(driver.error("cuStreamIsCapturing", status));
  if (capturing != 0)
    return fail(Code::unsupported, "the stream is being captured: a graph would wait but once");
  auto& waiting = WaitingStreams::all();
  if (auto entered = waiting.enter(context, stream); !entered)
    return fail(std::move(entered.error()));
  auto gate = close_stream(driver, stream);
  if (!gate) {
    waiting.leave(context, stream);
    return gate;
  }
  return std::make_unique<CountedGate>(context, stream, std::move(*gate));
}

}  // namespace weft::core::cuda
