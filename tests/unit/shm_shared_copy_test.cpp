// Copies that two threads share.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/pace.hpp"
#include "pattern.hpp"
#include "providers/shm/shared_copy.hpp"

namespace weft::providers::shm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t least = SharedCopy::least, most = std::size_t{1} << 20;
const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Looks for copies to help with until it is destroyed.
class Helper {
 public:
  explicit Helper(SharedCopy& copy) : copy_(copy) {
    copy_.attend(true);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested())
        if (copy_.help()) ++helped;
    });
  }
  std::atomic<std::size_t> helped{0};

 private:
  SharedCopy& copy_;
  std::jthread thread_;
};

struct Buffers {
  Blob from = test::pattern(most, 1), to = Blob(most);
  /// Whether the copy brought all of its bytes and no others.
  bool copied(SharedCopy& copy, std::size_t offset, std::size_t bytes, std::size_t source) {
    std::fill(to.begin(), to.end(), std::byte{0});
    copy.copy(to.data() + offset, from.data() + source, bytes);
    Blob expected(most);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(offset));
    return to == expected;
  }
};

TEST(ShmSharedCopy, CopiesAloneWhereNobodyAttends) {
  SharedCopy copy;
  Buffers buffers;
  for (const std::size_t bytes : {std::size_t{1}, least - 1, least, least + 1, most})
    EXPECT_TRUE(buffers.copied(copy, 0, bytes, 0)) << bytes;
  EXPECT_FALSE(copy.help()) << "nothing was offered";
}

TEST(ShmSharedCopy, IsNotHeldUpByOneWhoAttendsAndDoesNotHelp) {
  SharedCopy copy;
  Buffers buffers;
  copy.attend(true);
  for (const std::size_t bytes : {least, 2 * least + 1, most})
    EXPECT_TRUE(buffers.copied(copy, 0, bytes, 0)) << bytes;
  EXPECT_FALSE(copy.help()) << "all of it was copied";
}

TEST(ShmSharedCopy, EveryByteIsCopiedWhoeverCopiesIt) {
  Buffers buffers;
  std::size_t odd = 0, helped = 0;
  const Deadline deadline = Deadline::in(10s);
  for (std::size_t turn = 0; (turn < 20 || helped < 10) && !deadline.passed(); ++turn) {
    SharedCopy copy;
    const Helper helper(copy);
    for (std::size_t round = 0; round < 5; ++round) {
      odd = (odd + 7919) % 4096;
      const std::size_t bytes = std::min(least + (turn + round) % 24 * 40'009 + odd, most - 8192);
      ASSERT_TRUE(buffers.copied(copy, odd, bytes, 4096 - odd)) << bytes << " from " << odd;
    }
    helped += helper.helped;
  }
  if (helped == 0) GTEST_SKIP() << "the helper has got no core in time";
}

TEST(ShmSharedCopy, SeveralWhoCopyAtATimeDoNotMeet) {
  SharedCopy copy;
  const Helper helper(copy);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        Buffers buffers;
        for (std::size_t round = 0; round < 20; ++round)
          if (!buffers.copied(copy, round, least + round * 4001, 2 * round)) ++wrong;
      });
  }
  EXPECT_EQ(wrong, 0);
}

/// Whole pages to copy from, with a pattern, and to copy to.
struct Pages {
  Pages() {
    if (memory != MAP_FAILED) test::fill({from(), most}, 1);
  }
  ~Pages() {
    if (memory != MAP_FAILED) munmap(memory, 2 * most);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* from() const { return static_cast<std::byte*>(memory); }
  std::byte* to() const { return from() + most; }

  void* const memory =
      mmap(nullptr, 2 * most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// The last page of some memory, at which threads other than the one that makes this stand still
/// until it is released. One at a time.
class SlowPage {
 public:
  SlowPage(std::byte* memory, std::size_t bytes)
      : page_(memory + bytes - page_bytes), owner_(pthread_self()) {
    now_ = this;
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) { now_->touched(info->si_addr); };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    mprotect(page_, page_bytes, PROT_NONE);
  }
  ~SlowPage() {
    release();
    open();
    sigaction(SIGSEGV, &before_, nullptr);
  }
  SlowPage(const SlowPage&) = delete;
  SlowPage& operator=(const SlowPage&) = delete;
  bool somebody_stands() const { return stands_; }
  void release() { released_ = true; }

 private:
  void open() { mprotect(page_, page_bytes, PROT_READ | PROT_WRITE); }
  void touched(void* address) {
    const auto* const at = static_cast<std::byte*>(address);
    if (at < page_ || at >= page_ + page_bytes) {
      sigaction(SIGSEGV, &before_, nullptr);  // it is somebody else's fault, and happens again
      return;
    }
    if (pthread_equal(pthread_self(), owner_) == 0) {
      stands_ = true;
      const auto end = Clock::now() + 20s;
      while (!released_ && Clock::now() < end) core::relax();
    }
    open();
  }

  static inline SlowPage* now_ = nullptr;
  std::byte* const page_;
  const pthread_t owner_;
  struct sigaction before_ {};
  std::atomic<bool> stands_{false}, released_{false};
};

TEST(ShmSharedCopy, AHelperCopiesAllThatTheCopierHasNotTaken) {
  const Pages pages;
  ASSERT_NE(pages.memory, MAP_FAILED);
  std::byte *const from = pages.from(), *const to = pages.to();
  constexpr std::size_t bytes = most - 1001, first_row = most / 4;
  {
    SharedCopy copy;
    copy.attend(true);
    SlowPage first(from, page_bytes);
    std::jthread copier([&] { copy.copy(to, from, bytes); });
    const Deadline deadline = Deadline::in(10s);
    while (!first.somebody_stands() && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(first.somebody_stands());
    int turns = 0;
    while (turns < 16 && copy.help()) ++turns;
    EXPECT_LT(turns, 12) << "several slices at a time while many are left";
    EXPECT_TRUE(std::equal(from + first_row, from + bytes, to + first_row));
    EXPECT_TRUE(std::all_of(to + page_bytes, to + first_row - page_bytes, [](std::byte each) {
      return each == std::byte{0};
    })) << "the copier's";
    first.release();
  }
  EXPECT_TRUE(std::equal(from, from + bytes, to));
  EXPECT_TRUE(
      std::all_of(to + bytes, to + most, [](std::byte each) { return each == std::byte{0}; }));
}

TEST(ShmSharedCopy, DoesNotComeBackBeforeTheLastSliceIsCopied) {
  const Pages pages;
  ASSERT_NE(pages.memory, MAP_FAILED);
  std::byte *const from = pages.from(), *const to = pages.to();
  bool stood = false;
  for (const Deadline deadline = Deadline::in(30s); !stood && !deadline.passed();) {
    std::fill_n(to, most, std::byte{0});
    SharedCopy copy;
    const Helper helper(copy);
    SlowPage page(from, most);
    std::atomic<bool> back{false};
    std::atomic<bool> early{false};
    std::jthread watch([&] {
      while (!page.somebody_stands() && !back && !deadline.passed()) std::this_thread::yield();
      // Long enough for the rest of it.
      const auto end = Clock::now() + 50ms;
      while (!back && Clock::now() < end) std::this_thread::yield();
      early = back && page.somebody_stands();
      page.release();
    });
    copy.copy(to, from, most);
    back = true;
    watch.join();
    stood = page.somebody_stands();
    EXPECT_FALSE(early);
    EXPECT_TRUE(test::holds({to, most}, 1));
  }
  if (!stood) GTEST_SKIP() << "the helper has got no core in time";
}

TEST(ShmSharedCopy, WakesWhereCopiesComeCloseTogetherAndOnlyOnceInAWhile) {
  SharedCopy copy;
  auto now = Clock::time_point(1h);
  EXPECT_FALSE(copy.is_worth_waking(least, now)) << "the first of all";
  EXPECT_FALSE(copy.is_worth_waking(least, now += 51us)) << "seldom ones";
  EXPECT_TRUE(copy.is_worth_waking(least, now += 50us));
  for (const auto end = now + 999us; now + 10us < end;)
    ASSERT_FALSE(copy.is_worth_waking(least, now += 10us)) << "it has said so just now";
  now += 10us;
  EXPECT_TRUE(copy.is_worth_waking(least, now += 10us));
}

TEST(ShmSharedCopy, WakesForEachLargeOne) {
  SharedCopy copy;
  auto now = Clock::time_point(1h);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(copy.is_worth_waking(8 * least, now += 10us));
  EXPECT_FALSE(copy.is_worth_waking(8 * least - 1, now += 51us));
  EXPECT_FALSE(copy.wants_help(8 * least)) << "somebody was woken up, and will come";
}

TEST(ShmSharedCopy, WantsNoHelpWithSmallOnesNorWhereSomebodyAttends) {
  SharedCopy copy;
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(copy.wants_help(least - 1));
  copy.attend(true);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(copy.wants_help(least));
}

}  // namespace
}  // namespace weft::providers::shm
