// Memory while transfers run: a cursor and a window of operations, however long the list.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <weft/weft.hpp>

#include "null_transport.hpp"
#include "parts.hpp"
#include "rail/rail_scheduler.hpp"

namespace {

struct Count {
  std::atomic<std::int64_t> made{0}, live{0}, bytes{0};
};
Count count;
thread_local std::int64_t made_here = 0;  // by this thread

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  ++count.made;
  ++made_here;
  ++count.live;
  count.bytes += static_cast<std::int64_t>(bytes);
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  --count.live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
// As std::stable_sort asks for its buffer.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace weft::core::test {
namespace {

using Completes = weft::test::NullTransport::Completes;

class QuietHost final : public TransferHost {
 public:
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override {
    transfer->signal_ended(std::nullopt);
  }
  void offer_again(const std::shared_ptr<TransferState>& transfer) override {
    if (scheduler != nullptr) scheduler->add(transfer);
  }
  void transfer_ended(TransferState&) override {}
  RailScheduler* scheduler = nullptr;
};

/// One rail over a null transport.
struct Line {
  explicit Line(Completes when) : one_sided(when), bounce(when) {}
  weft::test::NullTransport one_sided, bounce, copies;
  RailScheduler scheduler{0, "null:0", {64, std::uint64_t{1} << 30}, one_sided, bounce, copies};
};

struct Spent {
  std::int64_t made = 0, bytes = 0;
};

Spent spent_on(std::size_t pieces, Completes when) {
  const auto peer = make_peer(1);
  Line line(when);
  QuietHost host;
  const auto transfer = std::make_shared<TransferState>(
      make_submission(make_prepared(peer, scattered(pieces, 64))), host);
  const Spent before{count.made, count.bytes};
  transfer->start({0});
  line.scheduler.add(transfer);
  while (!transfer->ended()) {
    line.scheduler.pump();
    line.one_sided.progress();
  }
  const Spent spent{count.made - before.made, count.bytes - before.bytes};
  EXPECT_EQ(transfer->state(), State::done);
  EXPECT_EQ(transfer->report().operations, pieces);
  return spent;
}

class AllocationCount : public testing::TestWithParam<Completes> {};

TEST_P(AllocationCount, AMillionPiecesTakeNoMoreThanAThousand) {
  const Spent few = spent_on(1000, GetParam());
  const Spent many = spent_on(1000000, GetParam());
  RecordProperty("allocations", static_cast<int>(many.made));
  RecordProperty("bytes", static_cast<int>(many.bytes));
  EXPECT_LE(many.made, few.made + 4);
  EXPECT_LE(many.bytes, few.bytes + 4096);
  // A window of 64 operations, and the queues' first blocks.
  EXPECT_LT(many.made, 100);
  EXPECT_LT(many.bytes, 64 * 1024);
}

TEST_P(AllocationCount, AMillionSmallTransfersLeaveNothing) {
  const auto peer = make_peer(1);
  Line line(GetParam());
  QuietHost host;
  const auto prepared = make_prepared(peer, scattered(3, 64));
  const auto carry = [&](int transfers) {
    for (int i = 0; i < transfers; ++i) {
      Submission submission(Clock::now());
      submission.bytes = prepared->bytes;
      submission.prepared = prepared;
      submission.deadline = Clock::now() + 1h;
      const auto transfer = std::make_shared<TransferState>(std::move(submission), host);
      transfer->start({0});
      line.scheduler.add(transfer);
      while (!transfer->ended()) {
        line.scheduler.pump();
        line.one_sided.progress();
      }
    }
    // What a rail still lists it drops when it looks again.
    line.scheduler.pump();
  };
  carry(1000);
  const std::int64_t live = count.live, made = count.made;
  carry(1000000);
  EXPECT_LE(count.live - live, 2);
  EXPECT_LE((count.made - made) / 1000000, 1) << "allocations per transfer";
  EXPECT_EQ(line.scheduler.in_flight(), 0U);
}

TEST_P(AllocationCount, ASmallTransferOverFourRailsIsOneAllocation) {
  const auto peer = make_peer(4);
  Line line(GetParam());
  QuietHost host;
  host.scheduler = &line.scheduler;
  const auto prepared = make_prepared(peer, scattered(1, 64), Direction::write, 4);
  for (std::size_t rail = 0; rail < 4; ++rail) prepared->path->of(rail)->proofs = 1;
  const auto carry = [&] {
    const auto transfer = std::make_shared<TransferState>(make_submission(prepared), host);
    transfer->start({0, 1, 2, 3});
    line.scheduler.add(transfer);
    while (!transfer->ended()) {
      line.scheduler.pump();
      line.one_sided.progress();
      line.bounce.progress();  // carries the proof
    }
    EXPECT_EQ(transfer->state(), State::done);
  };
  for (int i = 0; i < 100; ++i) carry();  // The rail's own lists grow meanwhile.
  const std::int64_t made = count.made;
  for (int i = 0; i < 1000; ++i) carry();
  EXPECT_EQ(count.made - made, 1000);
}

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

/// What the thread that submits them allocates for a thousand writes of one piece, between two
/// engines of this process.
std::int64_t spent_on_writes(Priority priority) {
  Engine a = must(Engine::open({})), b = must(Engine::open({}));
  const Peer to_b = must(a.connect(b.address(), soon()));
  Segment from = must(a.add(Memory::shared(4096))), to = must(b.add(Memory::shared(4096)));
  const Grant grant = must(to.grant({}, Rights::write));
  const Remote there = must(a.import(grant.blob()));
  const auto write = [&] {
    const Pair piece[] = {{0, 0, 64}};
    TransferOptions options;
    options.priority = priority;
    const std::int64_t before = made_here;
    Transfer transfer = must(a.write(from, there, piece, std::move(options)));
    const std::int64_t spent = made_here - before;
    EXPECT_TRUE(transfer.wait(soon()).has_value());
    return spent;
  };
  for (int i = 0; i < 100; ++i) write();  // The queues' lists grow meanwhile.
  std::int64_t spent = 0;
  for (int i = 0; i < 1000; ++i) spent += write();
  return spent;
}

TEST(AllocationsOfAWrite, OfOnePieceAreTwo) {
  EXPECT_LE(spent_on_writes(Priority::bulk) / 1000, 2) << "by a rail's thread";
  EXPECT_LE(spent_on_writes(Priority::latency) / 1000, 2) << "by the caller";
}

INSTANTIATE_TEST_SUITE_P(Null, AllocationCount,
                         testing::Values(Completes::at_once, Completes::on_progress),
                         [](const auto& info) {
                           return info.param == Completes::at_once ? "AtOnce" : "OnProgress";
                         });

}  // namespace
}  // namespace weft::core::test
