// Streams run late, each in its order and all out of order, and what waits for what is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cuda_sim.hpp"
#include "pattern.hpp"

namespace weft::cuda_sim {
namespace {

constexpr std::size_t size = 10'000, places = 8;
constexpr unsigned patience_ms = 30'000;

class CudaSimStreams : public testing::Test {
 protected:
  CudaSimStreams() { weft_cuda_sim_clear(); }
  ~CudaSimStreams() override {
    weft_cuda_sim_release_all();
    weft_cuda_sim_delay(0, 0);
  }
  /// Copies pinned memory to the device, and returns at once. Each goes to a place of its own, for
  /// a sanitizer sees when two write to one.
  void copy(Stream stream) {
    check(cuMemcpyAsync(memory_.address(next_place_++ % places * size), pinned_.address(), size,
                        stream));
  }

  const CurrentContext context_;
  const DeviceMemory memory_{places * size};
  const PinnedMemory pinned_{size};
  std::size_t next_place_ = 0;
};

TEST_F(CudaSimStreams, HeldOnesRunNothingUntilReleased) {
  const OwnedStream stream, other;
  weft_cuda_sim_hold(stream);
  test::fill(pinned_.bytes(), 1);
  copy(stream);
  copy(other);
  check(cuStreamSynchronize(other));
  EXPECT_EQ(cuStreamQuery(stream), not_ready);
  EXPECT_EQ(copies(Direction::host_to_device), 1u);
  // What is copied is what is there when the copy runs.
  test::fill(pinned_.bytes(), 2);
  weft_cuda_sim_release(stream);
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(cuStreamQuery(stream), success);
  EXPECT_TRUE(test::holds(memory_.read(0, size), 2));
}

TEST_F(CudaSimStreams, AreHeldAllTogetherNewOnesToo) {
  const OwnedStream before;
  weft_cuda_sim_hold_all();
  const OwnedStream after;
  copy(before);
  copy(after);
  // The default stream is not among them, or this would wait for ever.
  EXPECT_EQ(memory_.read(0, 1).size(), 1u);
  EXPECT_EQ(copies(Direction::host_to_device), 0u);
  weft_cuda_sim_release(after);
  check(cuStreamSynchronize(after));
  EXPECT_EQ(cuStreamQuery(before), not_ready);
  weft_cuda_sim_release_all();
  check(cuStreamSynchronize(before));
  EXPECT_EQ(copies(Direction::host_to_device), 2u);
}

TEST_F(CudaSimStreams, StepByStepRunOnePieceOfWork) {
  const OwnedStream stream;
  weft_cuda_sim_hold(stream);
  for (int i = 0; i < 5; ++i) copy(stream);
  weft_cuda_sim_step(stream, 2);
  EXPECT_TRUE(weft_cuda_sim_await(Phase::ended, 2, patience_ms));
  EXPECT_EQ(cuStreamQuery(stream), not_ready);
  weft_cuda_sim_step(stream, 1);
  EXPECT_TRUE(weft_cuda_sim_await(Phase::ended, 3, patience_ms));
  // Another stream's work comes and goes meanwhile, and this one's does not.
  const OwnedStream other;
  copy(other);
  check(cuStreamSynchronize(other));
  EXPECT_EQ(copies(Direction::host_to_device), 4u);
  EXPECT_FALSE(weft_cuda_sim_await(Phase::ended, 5, 1));
  weft_cuda_sim_release(stream);
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(copies(Direction::host_to_device), 6u);
}

TEST_F(CudaSimStreams, LogTellsTheOrderOfAllThatHappened) {
  const OwnedStream stream;
  weft_cuda_sim_hold(stream);
  copy(stream);
  const std::uint64_t between = weft_cuda_sim_sequence();
  weft_cuda_sim_release(stream);
  check(cuStreamSynchronize(stream));
  const auto all = records();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].phase, Phase::queued);
  EXPECT_EQ(all[1].phase, Phase::begun);
  EXPECT_EQ(all[2].phase, Phase::ended);
  EXPECT_LT(all[0].sequence, between);
  EXPECT_GT(all[1].sequence, between);
  EXPECT_GT(all[2].sequence, all[1].sequence);
  for (const Record& each : all) {
    EXPECT_EQ(each.work, all[0].work);
    EXPECT_EQ(each.operation, Operation::copy);
    EXPECT_EQ(each.direction, Direction::host_to_device);
    EXPECT_EQ(each.stream, static_cast<Stream>(stream));
    EXPECT_EQ(each.target, memory_.address());
    EXPECT_EQ(each.source, pinned_.address());
    EXPECT_EQ(each.bytes, size);
    EXPECT_FALSE(each.pageable);
  }
}

TEST_F(CudaSimStreams, EventsAreThereWhenWhatCameBeforeThemHasEnded) {
  const OwnedStream stream;
  const OwnedEvent event;
  EXPECT_EQ(cuEventQuery(event), success) << "of an event that was never recorded";
  weft_cuda_sim_hold(stream);
  copy(stream);
  check(cuEventRecord(event, stream));
  copy(stream);
  EXPECT_EQ(cuEventQuery(event), not_ready);
  weft_cuda_sim_step(stream, 1);
  EXPECT_TRUE(weft_cuda_sim_await(Phase::ended, 1, patience_ms));
  EXPECT_EQ(cuEventQuery(event), not_ready);
  weft_cuda_sim_step(stream, 1);
  check(cuEventSynchronize(event));
  EXPECT_EQ(cuEventQuery(event), success);
  EXPECT_EQ(copies(Direction::host_to_device), 1u) << "what came after is still held";
  weft_cuda_sim_release(stream);
  check(cuStreamSynchronize(stream));
}

TEST_F(CudaSimStreams, WaitForAnEventAsItWasWhenTheyWereTold) {
  const OwnedStream first, second;
  const OwnedEvent event;
  weft_cuda_sim_hold(first);
  copy(first);
  check(cuEventRecord(event, first));
  check(cuStreamWaitEvent(second, event, 0));
  copy(second);
  // Recorded again behind another copy, which `second` has nothing to do with.
  copy(first);
  check(cuEventRecord(event, first));
  EXPECT_EQ(cuStreamQuery(second), not_ready);
  weft_cuda_sim_step(first, 2);
  check(cuStreamSynchronize(second));
  EXPECT_EQ(cuStreamQuery(first), not_ready);
  EXPECT_EQ(cuEventQuery(event), not_ready);
  EXPECT_LT(sequence_of(Operation::record_event, Phase::ended, first),
            sequence_of(Operation::copy, Phase::begun, second));
  weft_cuda_sim_release(first);
  check(cuEventSynchronize(event));
}

TEST_F(CudaSimStreams, DestroyedOnesEndWhatTheyHave) {
  const OwnedEvent event;
  Stream stream = nullptr;
  check(cuStreamCreate(&stream, stream_non_blocking));
  weft_cuda_sim_hold(stream);
  copy(stream);
  check(cuEventRecord(event, stream));
  check(cuStreamDestroy_v2(stream));
  EXPECT_EQ(cuStreamQuery(stream), invalid_handle);
  EXPECT_EQ(cuStreamDestroy_v2(stream), invalid_handle);
  EXPECT_EQ(cuEventQuery(event), not_ready);
  weft_cuda_sim_release(stream);
  check(cuEventSynchronize(event));
  EXPECT_EQ(copies(Direction::host_to_device), 1u);
}

TEST_F(CudaSimStreams, WaitForEventsOfAnotherDevice) {
  const OwnedStream here;
  const OwnedEvent event;
  weft_cuda_sim_hold(here);
  copy(here);
  check(cuEventRecord(event, here));
  const CurrentContext other(1);
  Stream there = nullptr;
  check(cuStreamCreateWithPriority(&there, stream_non_blocking, -1));
  check(cuStreamWaitEvent(there, event, 0));
  check(cuMemcpyAsync(pinned_.address(), memory_.address(), size, there));
  EXPECT_EQ(cuStreamQuery(there), not_ready);
  weft_cuda_sim_release(here);
  check(cuStreamSynchronize(there));
  EXPECT_LT(sequence_of(Operation::copy, Phase::ended, here),
            sequence_of(Operation::copy, Phase::begun, there));
  check(cuStreamDestroy_v2(there));
}

TEST_F(CudaSimStreams, OverlapWhereNothingOrdersThem) {
  // A function of the program's keeps one stream busy, and the other goes on.
  const OwnedStream busy, other;
  std::atomic<bool> entered = false, leave = false;
  struct Flags {
    std::atomic<bool>*entered, *leave;
  } flags{&entered, &leave};
  check(cuLaunchHostFunc(
      busy,
      [](void* argument) {
        const auto* const given = static_cast<Flags*>(argument);
        *given->entered = true;
        given->leave->wait(false);
      },
      &flags));
  copy(busy);
  copy(other);
  check(cuStreamSynchronize(other));
  EXPECT_EQ(cuStreamQuery(busy), not_ready);
  leave = true;
  leave.notify_one();
  check(cuStreamSynchronize(busy));
  EXPECT_TRUE(entered);
}

TEST_F(CudaSimStreams, FunctionsMayNotCallTheDriver) {
  const OwnedStream stream;
  Status seen = success;
  check(cuLaunchHostFunc(
      stream, [](void* status) { *static_cast<Status*>(status) = cuCtxSynchronize(); }, &seen));
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(seen, not_permitted);
}

TEST_F(CudaSimStreams, BlockingOnesAndTheDefaultStreamWaitForEachOther) {
  const OwnedStream blocking(0), apart(stream_non_blocking);
  weft_cuda_sim_hold(blocking);
  copy(blocking);
  copy(nullptr);
  copy(apart);
  check(cuStreamSynchronize(apart));
  EXPECT_EQ(cuStreamQuery(nullptr), not_ready) << "it waits for the blocking stream";
  EXPECT_EQ(cuStreamQuery(stream_legacy), not_ready);
  weft_cuda_sim_release(blocking);
  check(cuStreamSynchronize(nullptr));
  EXPECT_GT(sequence_of(Operation::copy, Phase::begun, nullptr),
            sequence_of(Operation::copy, Phase::ended, blocking));

  weft_cuda_sim_clear();
  weft_cuda_sim_hold(nullptr);
  copy(nullptr);
  copy(blocking);
  copy(apart);
  check(cuStreamSynchronize(apart));
  EXPECT_EQ(cuStreamQuery(blocking), not_ready) << "it waits for the default stream";
  weft_cuda_sim_release(nullptr);
  check(cuStreamSynchronize(blocking));
  EXPECT_GT(sequence_of(Operation::copy, Phase::begun, blocking),
            sequence_of(Operation::copy, Phase::ended, nullptr));
}

TEST_F(CudaSimStreams, EachThreadMayHaveADefaultStreamOfItsOwn) {
  weft_cuda_sim_hold(stream_per_thread);
  copy(stream_per_thread);
  EXPECT_EQ(cuStreamQuery(stream_per_thread), not_ready);
  std::thread([this] {
    check(cuCtxPushCurrent_v2(context_.handle()));
    copy(stream_per_thread);
    check(cuStreamSynchronize(stream_per_thread));
  }).join();
  EXPECT_EQ(copies(Direction::host_to_device), 1u);
  weft_cuda_sim_release(stream_per_thread);
  check(cuStreamSynchronize(stream_per_thread));
}

TEST_F(CudaSimStreams, WaitForValuesInMemory) {
  const OwnedStream waiting, writing;
  const DeviceMemory word(8);
  check(cuMemsetD8_v2(word.address(), 0, 8));
  check(cuStreamWaitValue64_v2(waiting, word.address(), 5, wait_greater_or_equal));
  copy(waiting);
  check(cuStreamWriteValue64_v2(writing, word.address(), 4, 0));
  check(cuStreamSynchronize(writing));
  EXPECT_EQ(cuStreamQuery(waiting), not_ready);
  check(cuStreamWriteValue64_v2(writing, word.address(), 6, 0));
  check(cuStreamSynchronize(waiting));
  EXPECT_LT(sequence_of(Operation::write_value, Phase::begun, writing),
            sequence_of(Operation::wait_value, Phase::ended, waiting));
  EXPECT_EQ(copies(Direction::host_to_device), 1u);
}

TEST_F(CudaSimStreams, WaitForValuesThatTheCpuWrites) {
  const PinnedMemory word(8);
  auto& value = *reinterpret_cast<std::uint64_t*>(word.data());
  const OwnedStream stream;
  check(cuStreamWaitValue64_v2(stream, word.address(), 7, wait_equal));
  check(cuStreamWaitValue64_v2(stream, word.address(), 8, wait_and));
  check(cuStreamWaitValue64_v2(stream, word.address(), ~std::uint64_t{0} - 16, wait_nor));
  for (const std::uint64_t next : {7u, 24u, 0u}) {
    EXPECT_EQ(cuStreamQuery(stream), not_ready);
    std::atomic_ref(value).store(next);
    const std::size_t passed = next == 7 ? 1 : next == 24 ? 2 : 3;
    const auto ended = [] {
      return std::ranges::count_if(records(), [](const Record& each) {
        return each.operation == Operation::wait_value && each.phase == Phase::ended;
      });
    };
    while (static_cast<std::size_t>(ended()) < passed) std::this_thread::yield();
  }
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(cuStreamWaitValue64_v2(stream, word.address() + 4, 0, wait_equal), invalid_value);
  std::uint64_t plain = 0;
  EXPECT_EQ(cuStreamWaitValue64_v2(stream, reinterpret_cast<Address>(&plain), 0, wait_equal),
            invalid_value);
}

// As many as a context has queues of work.
TEST_F(CudaSimStreams, EightThatWaitKeepTheGpuFromShortCopies) {
  constexpr std::size_t queues = 8, long_enough = 17 << 10;
  const PinnedMemory words(queues * 8), host(long_enough);
  const DeviceMemory target(long_enough), source(long_enough);
  const std::vector<OwnedStream> waiting(queues);
  const OwnedStream stream, other;
  const auto wait = [&](std::size_t i) {
    check(cuStreamWaitValue64_v2(waiting[i], words.address() + 8 * i, 1, wait_greater_or_equal));
  };
  const auto copy_within = [&] {
    check(cuMemcpyAsync(target.address(), source.address(), long_enough, stream));
  };
  std::memset(words.data(), 0, words.bytes().size());
  for (std::size_t i = 0; i + 1 < queues; ++i) wait(i);
  copy_within();
  copy(stream);
  check(cuStreamSynchronize(stream));
  wait(queues - 1);
  copy_within();
  check(cuMemcpyAsync(target.address(), host.address(), long_enough, other));
  check(cuMemcpyAsync(host.address(), target.address(), 1, other));
  check(cuStreamSynchronize(other));
  copy(other);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cuStreamQuery(stream), not_ready);
  EXPECT_EQ(cuStreamQuery(other), not_ready);
  for (std::size_t i = 0; i < queues; ++i) {
    std::atomic_ref(reinterpret_cast<std::uint64_t*>(words.data())[i]).store(1);
    if (i > 0) continue;
    check(cuStreamSynchronize(stream));
    check(cuStreamSynchronize(other));
  }
  for (const OwnedStream& each : waiting) check(cuStreamSynchronize(each));
}

// With delays, two streams come in either order, and with the same seed no byte is different.
TEST_F(CudaSimStreams, ComeLateAndOutOfOrderByASeed) {
  const OwnedStream a, b;
  bool a_first = false, b_first = false;
  for (std::uint64_t seed = 1; seed <= 1000 && !(a_first && b_first); ++seed) {
    weft_cuda_sim_delay(seed, 300);
    weft_cuda_sim_clear();
    copy(a);
    copy(b);
    check(cuCtxSynchronize());
    const bool order = sequence_of(Operation::copy, Phase::ended, a) <
                       sequence_of(Operation::copy, Phase::ended, b);
    (order ? a_first : b_first) = true;
  }
  EXPECT_TRUE(a_first && b_first);
}

TEST_F(CudaSimStreams, CopyTheSameBytesHoweverLate) {
  weft_cuda_sim_delay(3, 200);
  std::vector<std::unique_ptr<OwnedStream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(std::make_unique<OwnedStream>());
  test::fill(pinned_.bytes(), 4);
  constexpr std::size_t piece = size / 100;
  for (std::size_t i = 0; i < 100; ++i)
    check(cuMemcpyAsync(memory_.address(i * piece), pinned_.address() + i * piece, piece,
                        *streams[i % streams.size()]));
  for (const auto& stream : streams) check(cuStreamSynchronize(*stream));
  EXPECT_TRUE(test::holds(memory_.read(0, size), 4));
}

}  // namespace
}  // namespace weft::cuda_sim
