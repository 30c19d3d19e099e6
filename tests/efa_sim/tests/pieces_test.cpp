// The device's pieces, one by one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "device/fabric.hpp"
#include "device/process_memory.hpp"

namespace weft::efa_sim {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

TEST(Settings, HaveDefaults) {
  const auto settings = Settings().of(0, "efa_0");
  EXPECT_EQ(settings.number(Setting::part), 0xefa0u);
  EXPECT_EQ(settings.number(Setting::mtu), 8192u);
  EXPECT_EQ(settings.number(Setting::peer_timeout_ms), 2000u);
  EXPECT_EQ(settings.number(Setting::pages), 25'165'824u);
  EXPECT_FALSE(settings.on(Setting::nic_down));
}

TEST(Settings, NarrowerScopesWin) {
  Settings settings;
  settings.apply("mtu=1,h2.mtu=2 efa_1.mtu=3\nh2.efa_1.mtu=4");
  EXPECT_EQ(settings.of(0, "efa_0").number(Setting::mtu), 1u);
  EXPECT_EQ(settings.of(2, "efa_0").number(Setting::mtu), 2u);
  EXPECT_EQ(settings.of(0, "efa_1").number(Setting::mtu), 3u);
  EXPECT_EQ(settings.of(2, "efa_1").number(Setting::mtu), 4u);
  EXPECT_EQ(settings.of(2, "efa_10").number(Setting::mtu), 2u);
}

TEST(Settings, KnowNumbersAndWords) {
  Settings settings;
  settings.apply("eagain=0.25,part=0xefa2,error_operation=write");
  const auto all = settings.of(0, "efa_0");
  EXPECT_EQ(all[Setting::eagain], 0.25);
  EXPECT_EQ(all.number(Setting::part), 0xefa2u);
  EXPECT_EQ(all.number(Setting::error_operation), 3u);
  settings.apply("clear,mtu=5");
  EXPECT_EQ(settings.of(0, "efa_0")[Setting::eagain], 0);
  EXPECT_EQ(settings.of(0, "efa_0").number(Setting::mtu), 5u);
}

TEST(Settings, GoBackToTheBeginning) {
  Settings settings("mtu=1,reorder=2");
  settings.apply("mtu=3,eagain=1");
  settings.apply("clear");
  const auto all = settings.of(0, "efa_0");
  EXPECT_EQ(all.number(Setting::mtu), 1u);
  EXPECT_EQ(all.number(Setting::reorder), 2u);
  EXPECT_EQ(all[Setting::eagain], 0);
}

TEST(Settings, RefuseAllOrNothing) {
  Settings settings;
  for (const char* text : {"mtu=1,what=2", "mtu=1,reorder", "mtu=1,eagain=", "mtu=1,eagain=-1",
                           "mtu=1,eagain=1x", "mtu=1,part=0x"})
    EXPECT_THROW(settings.apply(text), std::invalid_argument) << text;
  EXPECT_EQ(settings.of(0, "efa_0").number(Setting::mtu), 8192u);
}

TEST(Nics, AreParsed) {
  const auto nics = parse_nics("a@0000:00:1e.0@100,b@0001:00:1f.0@400,c@0:0:0.0@1@3");
  ASSERT_EQ(nics.size(), 3u);
  EXPECT_EQ(nics[1].name, "b");
  EXPECT_EQ(nics[1].pci, "0001:00:1f.0");
  EXPECT_EQ(nics[1].gigabits, 400u);
  EXPECT_EQ(nics[1].numa_node, -1);
  EXPECT_EQ(nics[2].numa_node, 3);
  for (const char* text : {"a", "a@b", "a@b@c", "a@b@1@c", "a@b@1@2@3"})
    EXPECT_THROW(parse_nics(text), std::invalid_argument) << text;
}

TEST(Nics, ManyHaveNamesAndPlacesOfTheirOwn) {
  std::set<std::string> names, places;
  for (const auto& each : parse_nics(nics_text(64))) {
    names.insert(each.name);
    places.insert(each.pci);
  }
  EXPECT_EQ(names.size(), 64u);
  EXPECT_EQ(places.size(), 64u);
}

TEST(PacketWindow, GivesEachOnceAndOutOfOrder) {
  std::mt19937 random(1);
  PacketWindow<int> window;
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) {
    window.add(i);
    if (window.size() == 16) order.push_back(window.take(random));
  }
  while (!window.empty()) order.push_back(window.take(random));
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(PacketWindow, OfOneKeepsOrder) {
  std::mt19937 random(1);
  PacketWindow<int> window;
  for (int i = 0; i < 100; ++i) {
    window.add(i);
    EXPECT_EQ(window.take(random), i);
  }
}

TEST(Regions, AllowWhatWasRegistered) {
  RegionTable regions;
  const Domain domain{1, 0}, other{2, 0};
  const std::uint32_t key = regions.add({domain, 1000, 100, remote_write}, false);
  EXPECT_TRUE(regions.allows(domain, key, 1000, 100, remote_write));
  EXPECT_TRUE(regions.allows(domain, key, 1099, 1, 0));
  EXPECT_TRUE(regions.allows(domain, key, 1100, 0, 0));
  EXPECT_FALSE(regions.allows(domain, key, 999, 1, 0));
  EXPECT_FALSE(regions.allows(domain, key, 1000, 101, 0));
  EXPECT_FALSE(regions.allows(domain, key, 1001, ~std::uint64_t{0}, 0));
  EXPECT_FALSE(regions.allows(domain, key, 1000, 1, remote_read));
  EXPECT_FALSE(regions.allows(domain, key + 1, 1000, 1, 0));
  EXPECT_FALSE(regions.allows(other, key, 1000, 1, 0));
  EXPECT_FALSE(regions.remove(key, other));
  EXPECT_TRUE(regions.remove(key, domain));
  EXPECT_FALSE(regions.allows(domain, key, 1000, 1, 0));
}

TEST(Regions, ReuseKeysOnlyIfAsked) {
  RegionTable regions;
  const Domain domain{1, 0};
  const auto again = [&](bool reusing) {
    const std::uint32_t key = regions.add({domain, 0, 1, 0}, reusing);
    regions.remove(key, domain);
    return key;
  };
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 1000; ++i) keys.insert(again(false));
  EXPECT_EQ(keys.size(), 1000u);
  EXPECT_EQ(again(true), again(true));
}

TEST(Regions, CountPages) {
  const auto pages = [](std::uint64_t address, std::uint64_t length) {
    return RegionTable::Region{{1, 0}, address, length, 0}.pages();
  };
  EXPECT_EQ(pages(4096, 0), 0u);
  EXPECT_EQ(pages(4096, 1), 1u);
  EXPECT_EQ(pages(4096, 4096), 1u);
  EXPECT_EQ(pages(4096, 4097), 2u);
  EXPECT_EQ(pages(4095, 2), 2u);
  EXPECT_EQ(pages(4095, 4098), 3u);
}

TEST(Regions, AreCountedByProcess) {
  RegionTable regions;
  const Domain domain{1, 10}, other{2, 20};
  const std::uint32_t key = regions.add({domain, 0, 4096, 0}, false);
  regions.add({domain, 0, 8192, 0}, false);
  regions.add({other, 0, 4096, 0}, false);
  const auto counts = [&](pid_t process) {
    const Registrations found = regions.of(process);
    return std::array{found.made, found.regions, found.pages};
  };
  EXPECT_THAT(counts(10), ElementsAre(2, 2, 3));
  EXPECT_THAT(counts(20), ElementsAre(1, 1, 1));
  EXPECT_THAT(counts(0), ElementsAre(3, 3, 4));
  regions.remove(key, domain);
  EXPECT_THAT(counts(10), ElementsAre(2, 1, 2));
  regions.remove_all_of(domain);
  EXPECT_THAT(counts(10), ElementsAre(2, 0, 0));
  EXPECT_THAT(counts(0), ElementsAre(3, 1, 1));
  EXPECT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions.pages(), 1u);
}

TEST(Addresses, BelongToDomainsAndAreCounted) {
  AddressTable addresses;
  const Domain domain{1, 0}, other{2, 0};
  const Gid gid{1};
  const std::uint16_t handle = addresses.add(domain, gid);
  EXPECT_EQ(addresses.add(domain, gid), handle);
  EXPECT_NE(addresses.add(other, gid), handle);
  EXPECT_FALSE(addresses.remove(handle, other));
  EXPECT_EQ(addresses.size(), 2u);
  EXPECT_TRUE(addresses.remove(handle, domain));
  EXPECT_EQ(addresses.find(domain, handle), gid);
  EXPECT_TRUE(addresses.remove(handle, domain));
  EXPECT_EQ(addresses.size(), 1u);
  EXPECT_FALSE(addresses.find(domain, handle));
  EXPECT_FALSE(addresses.handle_of(domain, gid));
  EXPECT_TRUE(addresses.handle_of(other, gid));
}

TEST(ProcessMemory, PartsOfPieces) {
  const auto lengths = [](std::uint64_t offset, std::uint64_t length) {
    std::vector<std::uint64_t> numbers;
    for (const Piece& each : part_of({{100, 10}, {200, 0}, {300, 10}}, offset, length)) {
      numbers.push_back(each.address);
      numbers.push_back(each.length);
    }
    return numbers;
  };
  EXPECT_THAT(lengths(0, 20), ElementsAre(100, 10, 300, 10));
  EXPECT_THAT(lengths(5, 7), ElementsAre(105, 5, 300, 2));
  EXPECT_THAT(lengths(10, 10), ElementsAre(300, 10));
  EXPECT_THAT(lengths(3, 0), ElementsAre());
}

/// A completion queue of 4 entries, and its user's view.
class CompletionQueues : public testing::Test {
 protected:
  static CompletionEntry entry(std::uint16_t id) {
    CompletionEntry entry{};
    entry.request_id = id;
    return entry;
  }
  /// The ids that can be read now.
  std::vector<int> read() {
    std::vector<int> ids;
    while ((view.ring.at(read_).flags & completion_phase) == view.phase_at(read_))
      ids.push_back(view.ring.at(read_++).request_id);
    ring(0);
    return ids;
  }
  /// Takes an event, as if there were one, and asks for the next.
  void take_event() {
    ++taken_;
    ring(doorbell_arm);
  }
  bool has_event() {
    std::uint64_t event = 0;
    return ::read(events.get(), &event, sizeof event) == sizeof event && event == 42;
  }

  int pipe_[2] = {-1, -1};
  const bool piped_ = pipe2(pipe_, O_NONBLOCK) == 0;
  Descriptor events{pipe_[0]};
  CompletionQueue queue{4, Descriptor(pipe_[1]), 42};
  CompletionQueueQueues view{SharedMemory::map(Descriptor(dup(queue.memory().descriptor())),
                                               CompletionQueueQueues::bytes_for(4)),
                             4};
  const Time now = Clock::now();

 private:
  void ring(std::uint32_t arm) {
    view.doorbell().store(read_ | arm |
                          (taken_ << doorbell_sequence_shift & doorbell_sequence_mask));
  }
  std::uint16_t read_ = 0;
  std::uint32_t taken_ = 0;
};

TEST_F(CompletionQueues, TurnTheirPhase) {
  for (std::uint16_t i = 0; i < 20; i = static_cast<std::uint16_t>(i + 2)) {
    queue.add(entry(i), now);
    queue.add(entry(static_cast<std::uint16_t>(i + 1)), now);
    queue.advance(now);
    ASSERT_THAT(read(), ElementsAre(i, i + 1));
  }
}

TEST_F(CompletionQueues, KeepWhatHasNoRoom) {
  for (std::uint16_t i = 0; i < 6; ++i) queue.add(entry(i), now);
  queue.advance(now);
  queue.advance(now);
  EXPECT_EQ(queue.times_full(), 1u);
  EXPECT_THAT(read(), ElementsAre(0, 1, 2, 3));
  queue.advance(now);
  EXPECT_THAT(read(), ElementsAre(4, 5));
  EXPECT_TRUE(queue.empty());
}

TEST_F(CompletionQueues, WriteInOrderOfTheirTimes) {
  queue.add(entry(1), now + 2ms);
  queue.add(entry(2), now + 1ms);
  EXPECT_FALSE(queue.advance(now));
  queue.advance(now + 1ms);
  EXPECT_THAT(read(), ElementsAre(2));
  queue.advance(now + 2ms);
  EXPECT_THAT(read(), ElementsAre(1));
}

TEST_F(CompletionQueues, NotifyOnceForEachEventTaken) {
  take_event();
  queue.advance(now);
  EXPECT_FALSE(has_event()) << "nothing is there to be told";
  queue.add(entry(1), now);
  queue.advance(now);
  EXPECT_TRUE(has_event());
  read();
  queue.add(entry(2), now);
  queue.advance(now);
  EXPECT_FALSE(has_event()) << "told again before the first event was taken";
  take_event();
  queue.advance(now);
  EXPECT_TRUE(has_event());
  EXPECT_FALSE(queue.advance(now)) << "told twice";
}

TEST_F(CompletionQueues, KeepTheWishForAnEvent) {
  // Who asks for an event, and then reads what is there, has nothing but the doorbell's last value.
  take_event();
  read();
  queue.add(entry(1), now);
  queue.advance(now);
  EXPECT_TRUE(has_event());
}

}  // namespace
}  // namespace weft::efa_sim
