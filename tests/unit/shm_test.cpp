// The shm provider's own parts, within one process: rings, registrations, and an endpoint's ends.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "providers/shm/neighbour.hpp"
#include "providers/shm/registrations.hpp"
#include "providers/shm/ring.hpp"
#include "shm_pair.hpp"

namespace weft::providers::shm {
namespace {

Result<Mapped<Slot>> fresh_slot() {
  return create_region().and_then([](const Descriptor& region) { return map_slot(region, 3); });
}

// arm64 kernels with pages of 64 KiB refuse other offsets.
TEST(ShmRegion, IsMappedAtWholePagesOfAnyKernel) {
  const Descriptor region = create_region().value();
  const auto head = map_head(region);
  std::deque<Mapped<Slot>> slots;
  for (const std::size_t index : {std::size_t{0}, std::size_t{1}, slot_count - 1})
    slots.push_back(map_slot(region, index).value());
  int mappings = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("weft-shm") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, rights;
    std::uint64_t offset = 0;
    words >> range >> rights >> std::hex >> offset;
    EXPECT_EQ(offset % (64 << 10), 0U) << line;
    ++mappings;
  }
  EXPECT_GE(mappings, 2) << "the kernel joins neighbours";
}

TEST(ShmRing, CarriesAStreamInPiecesOfAllSizes) {
  auto slot = fresh_slot();
  ASSERT_TRUE(slot);
  RingWriter writer;
  RingReader reader;
  const Blob sent = numbers(5 * ring_bytes + 77);
  Blob got;
  std::size_t at = 0;
  for (std::size_t step = 1; got.size() < sent.size(); step = step * 3 % 70'001 + 1) {
    at += writer.write(**slot, std::span(sent).subspan(at, std::min(step, sent.size() - at)));
    writer.publish(**slot);
    Blob part(std::min(reader.available(**slot).value(), step));
    reader.read(**slot, part);
    reader.publish(**slot);
    got.insert(got.end(), part.begin(), part.end());
  }
  EXPECT_EQ(got, sent);
}

TEST(ShmRing, IsFullAtItsSizeAndNotBefore) {
  auto slot = fresh_slot();
  ASSERT_TRUE(slot);
  RingWriter writer;
  const Blob much = numbers(ring_bytes + 1);
  EXPECT_EQ(writer.write(**slot, much), ring_bytes);
  EXPECT_EQ(writer.write(**slot, much), 0U);
}

TEST(ShmRing, ACountThatMakesNoSenseIsNotFollowed) {
  auto slot = fresh_slot();
  ASSERT_TRUE(slot);
  (*slot)->written.store(ring_bytes + 1);
  EXPECT_FALSE(RingReader().available(**slot).has_value());
  (*slot)->consumed.store(1);  // more than was ever written
  EXPECT_EQ(RingWriter().room(**slot), 0U);
}

TEST(ShmRegion, OthersThanRegionsAreRefused) {
  const Descriptor small(memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(check_region(small));
  const Descriptor unsealed(memfd_create("weft-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(region_bytes)), 0);
  EXPECT_FALSE(check_region(unsealed)) << "its owner could cut it off under our feet";
  auto region = create_region();
  ASSERT_TRUE(region);
  EXPECT_TRUE(check_region(*region));
  EXPECT_NE(ftruncate(region->get(), 0), 0);
}

/// A table of registrations, with one slot claimed in its region.
class ShmRegistrations : public testing::Test {
 protected:
  ShmRegistrations() {
    head->claimed = 1;
    head->claims[0].owner = 99;
  }
  std::unique_ptr<Registration> add() {
    return table.add({&memory, 1}, Access::remote_write).value();
  }
  Entry& entry_of(std::uint64_t key) { return head->entries[key % entry_count]; }
  Mapped<Head> head = map_head(create_region().value()).value();
  std::atomic<bool> gone{false};
  Registrations table{*head, [this](const Claim& claim) { return claim.owner == 99 && gone; },
                      [](const Claim&) {}};
  std::byte memory{};
};

TEST_F(ShmRegistrations, AreClosedWhenNobodyCopiesAnyMore) {
  auto registration = add();
  const std::uint64_t key = registration->key();
  head->claims[0].copying[1].key = key;
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    registration.reset();
    closed = true;
  });
  while (entry_of(key).key != 0) std::this_thread::yield();
  EXPECT_FALSE(closed) << "somebody is within a copy";
  head->claims[0].copying[1].key = 0;
  closing.join();
  EXPECT_EQ(&entry_of(add()->key()), &entry_of(key)) << "the entry serves again";
}

TEST_F(ShmRegistrations, DoNotWaitForOtherKeysOrTheDead) {
  auto one = add(), other = add();
  const std::uint64_t key = other->key();
  head->claims[0].copying[1].key = key;
  one.reset();
  gone = true;
  other.reset();
  EXPECT_EQ(&entry_of(add()->key()), &entry_of(key));
}

TEST_F(ShmRegistrations, WhereSomebodyNeverComesOutStayOutOfUse) {
  auto registration = add();
  const std::uint64_t key = registration->key();
  head->claims[0].copying[1].key = key;
  registration.reset();  // gives up in the end
  EXPECT_NE(&entry_of(add()->key()), &entry_of(key));
}

TEST_F(ShmPair, WritesAndReadsWhereARegistrationLets) {
  const auto both =
      b->register_memory({there.data(), there.size()}, Access::remote_read_write).value();
  EXPECT_TRUE(write(0, 10'000, both->key()).ok);
  EXPECT_EQ(there, here);
  Blob back(100);
  Operation read;
  a->read(read, {back.data(), back.size(), nullptr}, {to_b, 50, both->key()});
  a->poll();
  EXPECT_TRUE(read.ok);
  EXPECT_EQ(back, Blob(here.begin() + 50, here.begin() + 150));
}

TEST_F(ShmPair, RefusesWhatARegistrationDoesNotLet) {
  const auto readable = b->register_memory({there.data(), 100}, Access::remote_read).value();
  auto writable = b->register_memory({there.data(), 100}, Access::remote_write).value();
  const std::uint64_t key = writable->key();
  EXPECT_EQ(write(0, 100, readable->key()).error, EACCES);
  EXPECT_EQ(write(1, 100, key).error, EACCES);
  EXPECT_EQ(write(~std::uint64_t{0}, 2, key).error, EACCES);
  EXPECT_EQ(write(0, 1, key + 1).error, EKEYREJECTED);
  EXPECT_EQ(write(0, 1, key ^ (std::uint64_t{1} << 40)).error, EKEYREJECTED);
  EXPECT_EQ(write(0, 1, 0).error, EKEYREJECTED);
  EXPECT_EQ(there, Blob(10'000));
  EXPECT_TRUE(write(0, 100, key).ok);
  writable.reset();
  EXPECT_EQ(write(0, 1, key).error, EKEYREJECTED);
  const auto again = b->register_memory({there.data(), 100}, Access::remote_write).value();
  EXPECT_NE(again->key(), key) << "a key is never used twice";
}

TEST_F(ShmPair, MemoryThatIsNotThereIsAnError) {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto hole = b->register_memory({page, 4096}, Access::remote_write).value();
  EXPECT_EQ(write(0, 100, hole->key()).error, EFAULT);
  munmap(page, 4096);
}

TEST_F(ShmPair, LargeMessagesWaitForTheirBufferAndArriveInOrder) {
  const Blob large = numbers(3 * ring_bytes, 7), small = numbers(10, 9);
  Operation first, second;
  a->send(first, {const_cast<std::byte*>(large.data()), large.size(), nullptr}, to_b,
          MessageClass::bounce);
  a->send(second, {const_cast<std::byte*>(small.data()), small.size(), nullptr}, to_b,
          MessageClass::message);
  Blob into_large(large.size()), into_small(100);
  Operation got_large, got_small;
  b->receive(got_small, {into_small.data(), into_small.size(), nullptr}, MessageClass::message);
  for (int i = 0; i < 10; ++i) a->poll(), b->poll();
  EXPECT_EQ(first.ended + second.ended + got_large.ended + got_small.ended, 0);
  b->receive(got_large, {into_large.data(), into_large.size(), nullptr}, MessageClass::bounce);
  for (int i = 0; i < 20; ++i) a->poll(), b->poll();
  EXPECT_TRUE(first.ok && second.ok && got_large.ok && got_small.ok);
  EXPECT_EQ(into_large, large);
  EXPECT_EQ(got_small.length, 10U);
  EXPECT_EQ(Blob(into_small.begin(), into_small.begin() + 10), small);
}

TEST_F(ShmPair, AMessageLargerThanItsBufferIsAnErrorAndTheNextOneArrives) {
  Blob buffer(50);
  Operation sent, sent_too, refused, good;
  b->receive(good, {buffer.data(), 50, nullptr}, MessageClass::message);
  b->receive(refused, {buffer.data(), 50, nullptr}, MessageClass::message);  // the first one taken
  a->send(sent, {here.data(), 51, nullptr}, to_b, MessageClass::message);
  a->send(sent_too, {here.data() + 1, 50, nullptr}, to_b, MessageClass::message);
  for (int i = 0; i < 5; ++i) a->poll(), b->poll();
  EXPECT_EQ(refused.error, EMSGSIZE);
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(std::memcmp(buffer.data(), here.data() + 1, 50), 0);
}

TEST_F(ShmPair, AClosedEndpointTakesNothingAndSendersHearOfIt) {
  auto memory = b->register_memory({there.data(), 100}, Access::remote_write).value();
  const std::uint64_t key = memory->key();
  Operation sent;
  a->send(sent, {here.data(), 10, nullptr}, to_b, MessageClass::message);
  memory.reset();
  b.reset();
  for (int i = 0; i < 1000 && sent.ended == 0; ++i) a->poll();
  EXPECT_EQ(sent.error, ECONNRESET);
  EXPECT_EQ(write(0, 10, key).error, EKEYREJECTED);
}

TEST_F(ShmPair, WhatIsUnderWayToARemovedPeerEnds) {
  std::deque<Operation> sent(5);
  for (Operation& each : sent)
    a->send(each, {here.data(), here.size(), nullptr}, to_b, MessageClass::bounce);
  a->remove(to_b);
  a->poll();
  for (const Operation& each : sent) EXPECT_EQ(each.error, ECONNRESET);
  Operation more;
  EXPECT_EQ(a->send(more, {here.data(), 1, nullptr}, to_b, MessageClass::bounce).status,
            PostStatus::failed);
}

TEST_F(ShmPair, SignalsDoNotLookLikeDeath) {
  const auto both = b->register_memory({there.data(), there.size()}, Access::remote_write).value();
  struct sigaction counting {};
  struct sigaction before {};
  static volatile std::sig_atomic_t signals = 0;
  counting.sa_handler = [](int) { signals = signals + 1; };
  counting.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &counting, &before);
  const itimerval often{{0, 200}, {0, 200}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  int failed = 0;
  for (int i = 0; i < 1'000'000 && signals < 1000; ++i)
    failed += write(0, 64, both->key()).ok ? 0 : 1;
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(signals, 0);
  EXPECT_EQ(failed, 0);
}

TEST_F(ShmPair, TheSlotOfADeadProcessIsFreedEvenIfNobodyReapsIt) {
  Address own;
  std::memcpy(&own, b->address().data(), sizeof own);
  const auto head = map_head(Descriptor(dup(own.region))).value();
  const auto claimed = [&] {
    return std::count_if(head->claims.begin(), head->claims.end(),
                         [](const Claim& claim) { return claim.owner != 0; });
  };
  const pid_t child = fork();
  if (child == 0) {
    auto passer = open_endpoint();
    _exit(passer && (*passer)->insert(b->address()) ? 0 : 1);
  }
  siginfo_t how{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(how.si_status, 0);
  EXPECT_EQ(claimed(), 2) << "the child's and a's";
  b->remove(to_a);
  b->poll();
  EXPECT_EQ(claimed(), 1);
  waitpid(child, nullptr, 0);
}

TEST(ShmEndpoint, WithoutDescriptorsFailsToOpen) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  for (rlim_t most = 0; most < 40; ++most) {
    const rlimit few{most, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    auto opened = open_endpoint();
    setrlimit(RLIMIT_NOFILE, &before);
    if (opened) return;
    EXPECT_EQ(opened.error().code(), Code::unavailable);
  }
}

TEST_F(ShmPair, SlotsAreGivenBack) {
  for (std::size_t round = 0; round < slot_count + 10; ++round) {
    auto passer = open_endpoint().value();
    const auto address = passer->insert(b->address());
    ASSERT_TRUE(address) << round << ": " << address.error().to_string();
    passer.reset();
    b->poll();
  }
}

TEST_F(ShmPair, AWaitingThreadIsWokenByAMessageAndByItsConsumption) {
  Blob buffer(50);
  Operation got, sent;
  b->receive(got, {buffer.data(), 50, nullptr}, MessageClass::message);
  pollfd bell_of_b{b->wait_fd(), POLLIN, 0}, bell_of_a{a->wait_fd(), POLLIN, 0};
  ASSERT_TRUE(b->may_sleep());
  EXPECT_EQ(::poll(&bell_of_b, 1, 0), 0);
  a->send(sent, {here.data(), 10, nullptr}, to_b, MessageClass::message);
  EXPECT_EQ(::poll(&bell_of_b, 1, 1000), 1);
  ASSERT_TRUE(a->may_sleep());
  b->poll();
  EXPECT_TRUE(got.ok);
  EXPECT_EQ(::poll(&bell_of_a, 1, 1000), 1);
  a->poll();
  EXPECT_TRUE(sent.ok);
  EXPECT_EQ(::poll(&bell_of_b, 1, 0), 0) << "heard once";
}

TEST(ShmAddress, ThatLeadsNowhereIsRefused) {
  auto a = open_endpoint().value(), b = open_endpoint().value();
  Address good;
  std::memcpy(&good, b->address().data(), sizeof good);
  const auto refuses = [&](Address bad) {
    const auto result = a->insert(std::as_bytes(std::span(&bad, 1)));
    EXPECT_FALSE(result);
    return result ? std::string() : result.error().message();
  };
  Address bad = good;
  bad.nonce ^= 1;
  EXPECT_NE(refuses(bad).find("is gone"), std::string::npos);
  bad = good;
  bad.region = 0;  // some other descriptor
  refuses(bad);
  bad = good;
  std::swap(bad.region, bad.bell);
  refuses(bad);
  bad = good;
  bad.pid = 0;
  refuses(bad);
  bad.pid = -1;
  refuses(bad);
  EXPECT_FALSE(a->insert(Bytes(b->address()).first(5)));
  EXPECT_TRUE(a->insert(b->address()));
}

}  // namespace
}  // namespace weft::providers::shm
