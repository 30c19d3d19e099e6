// What must hold on any machine, on thousands of them that are made at random. A failure names the
// seed of the machine; text_of() shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <weft/topology.hpp>

#include "expected.hpp"
#include "hwloc_xml.hpp"
#include "providers/sanitizer.hpp"
#include "random_machine.hpp"

namespace weft::facts {
namespace {

constexpr std::uint64_t machines_as_objects = providers::sanitized ? 200 : 1000;
constexpr std::uint64_t machines_as_xml = providers::sanitized ? 60 : 300;

using Nics = std::vector<std::size_t>;

/// Everything that can be served: GPUs, drives, nodes, memory anywhere.
std::vector<Place> places_of(const Topology& topology) {
  std::vector<Place> places = {{MemoryKind::host, -1, -1}};
  for (const NumaNode& node : topology.nodes) places.push_back({MemoryKind::host, node.id, -1});
  for (std::size_t i = 0; i < topology.gpus.size(); ++i)
    places.push_back({MemoryKind::device, -1, static_cast<int>(i)});
  for (std::size_t i = 0; i < topology.drives.size(); ++i)
    places.push_back({MemoryKind::file, -1, -1, static_cast<int>(i)});
  return places;
}

Nics serving(const Affinity& found) {
  Nics nics;
  for (std::size_t i = 0; i < found.serving; ++i) nics.push_back(found.order.at(i).nic);
  std::sort(nics.begin(), nics.end());
  return nics;
}

Nics all_nics(const Topology& topology) {
  Nics all(topology.nics.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// What is served by which NICs, by name of neither.
std::string solution(const Topology& topology) {
  std::string text;
  for (const Place& place : places_of(topology)) {
    const Affinity found = affinity(topology, place, preferred_nics(topology));
    text += std::to_string(found.serving) + ":";
    for (const NicCost& each : found.order) text += " " + std::to_string(each.nic);
    text += "\n";
  }
  return text;
}

/// Calls `check` with many topologies, until one fails.
template <typename Check>
void for_random_topologies(std::initializer_list<Speeds> kinds, Check check) {
  for (const Speeds speeds : kinds)
    for (std::uint64_t seed = 1; seed <= machines_as_objects; ++seed) {
      const Topology topology = expected_topology(random_machine(seed, speeds));
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << (speeds == Speeds::equal ? ", equal speeds\n" : "\n")
                   << text_of(topology));
      check(topology);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(RandomMachines, EverythingIsServedIfThereIsANic) {
  for_random_topologies({Speeds::any, Speeds::equal}, [](const Topology& topology) {
    const Nics nics = all_nics(topology);
    for (const Place& place : places_of(topology)) {
      const Affinity found = affinity(topology, place, nics);
      EXPECT_EQ(found.serving > 0, !nics.empty());
      EXPECT_NE(found.reason, "");
    }
  });
}

TEST(RandomMachines, AllNicsAreInOrder) {
  for_random_topologies({Speeds::any}, [](const Topology& topology) {
    std::mt19937_64 random(topology.nics.size());
    Nics some, missing;
    for (const std::size_t nic : all_nics(topology)) {
      if (random() % 4 != 0) some.push_back(nic);
      if (random() % 4 == 0) missing.push_back(nic);
    }
    std::set<std::size_t> usable(some.begin(), some.end());
    for (const std::size_t nic : missing) usable.erase(nic);
    for (const Place& place : places_of(topology)) {
      const Affinity found = affinity(topology, place, some, missing);
      ASSERT_LE(found.serving, found.order.size());
      EXPECT_EQ(found.serving > 0, !usable.empty());
      std::set<std::size_t> listed;
      for (const NicCost& each : found.order) {
        ASSERT_LT(each.nic, topology.nics.size());
        EXPECT_TRUE(listed.insert(each.nic).second) << "NIC " << each.nic << " is listed twice";
        EXPECT_GT(each.gbps, 0);
        EXPECT_GT(each.cost, 0);
        const double own = topology.nics[each.nic].gbps;
        EXPECT_TRUE(own <= 0 || each.gbps <= own);
      }
      EXPECT_EQ(listed, usable);
      const auto by_cost = [](const NicCost& a, const NicCost& b) { return a.cost < b.cost; };
      EXPECT_TRUE(std::is_sorted(found.order.begin() + static_cast<std::ptrdiff_t>(found.serving),
                                 found.order.end(), by_cost));
    }
  });
}

/// The switches above something, lowest first.
std::vector<int> switches_above(const Topology& topology, int lowest) {
  std::vector<int> above;
  for (; lowest >= 0; lowest = topology.switches[static_cast<std::size_t>(lowest)].above)
    above.push_back(lowest);
  return above;
}

/// The lowest switch above a GPU that has a NIC anywhere below; -1 if there is none.
int common_switch(const Topology& topology, const Gpu& gpu) {
  for (const int each : switches_above(topology, gpu.pci_switch))
    for (const Nic& nic : topology.nics) {
      const auto above = switches_above(topology, nic.pci_switch);
      if (std::find(above.begin(), above.end(), each) != above.end()) return each;
    }
  return -1;
}

TEST(RandomMachines, GpusShareTheNicsOfTheirSwitchEvenly) {
  std::uint64_t checked = 0;
  for_random_topologies({Speeds::equal}, [&](const Topology& topology) {
    std::map<int, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < topology.gpus.size(); ++i)
      groups[common_switch(topology, topology.gpus[i])].push_back(i);
    for (const auto& [at, gpus] : groups) {
      if (at < 0) continue;
      // GPUs further down have NICs of their own, which they keep to themselves where they can.
      const bool others_below = std::any_of(groups.begin(), groups.end(), [&, at = at](auto& each) {
        const auto above = switches_above(topology, each.first);
        return each.first != at && std::find(above.begin(), above.end(), at) != above.end();
      });
      if (others_below) continue;
      std::map<std::size_t, int> uses;
      for (const std::size_t nic : all_nics(topology)) {
        const auto above = switches_above(topology, topology.nics[nic].pci_switch);
        if (std::find(above.begin(), above.end(), at) != above.end()) uses[nic] = 0;
      }
      for (const std::size_t gpu : gpus) {
        const Nics found = serving(affinity(
            topology, {MemoryKind::device, -1, static_cast<int>(gpu)}, all_nics(topology)));
        for (const std::size_t nic : found) {
          EXPECT_EQ(uses.count(nic), 1U) << "GPU " << gpu << " has a NIC from elsewhere";
          ++uses[nic];
        }
      }
      const auto [least, most] = std::minmax_element(
          uses.begin(), uses.end(), [](auto& a, auto& b) { return a.second < b.second; });
      EXPECT_LE(most->second - least->second, 1)
          << "at switch " << at << " NIC " << most->first << " is used " << most->second
          << " times, NIC " << least->first << " " << least->second << " times";
      ++checked;
    }
  });
  EXPECT_GT(checked, machines_as_objects) << "the machines hardly ever have what is to be checked";
}

/// Without these, those that did not use them keep exactly what they had, and others the rest of
/// it.
void expect_loss_is_local(const Topology& topology, const Place& place, const Nics& lost) {
  const Nics nics = all_nics(topology);
  const Nics usual = serving(affinity(topology, place, nics));
  const Nics left = serving(affinity(topology, place, nics, lost));
  Nics kept = usual;
  for (const std::size_t each : lost) {
    std::erase(kept, each);
    EXPECT_EQ(std::count(left.begin(), left.end(), each), 0);
  }
  const auto say = [&] {
    return testing::Message() << "node " << place.numa_node << ", device " << place.device
                              << ", drive " << place.drive << ", without NICs "
                              << testing::PrintToString(lost);
  };
  EXPECT_EQ(left.empty(), lost.size() == nics.size()) << say();
  EXPECT_TRUE(std::includes(left.begin(), left.end(), kept.begin(), kept.end())) << say();
  EXPECT_TRUE(kept.size() < usual.size() || left == usual) << say();
}

TEST(RandomMachines, ALostNicConcernsOnlyThoseThatUsedIt) {
  for_random_topologies({Speeds::any, Speeds::equal}, [](const Topology& topology) {
    const std::size_t count = topology.nics.size();
    if (count == 0) return;
    std::mt19937_64 random(count);
    const std::size_t first = random() % count;
    const Nics one = {first};
    Nics two = {first, (first + 1 + random() % count) % count};
    if (two[0] == two[1]) two.pop_back();
    for (const Place& place : places_of(topology)) {
      expect_loss_is_local(topology, place, one);
      expect_loss_is_local(topology, place, two);
    }
  });
}

TEST(RandomFiles, WhatIsReadIsWhatIsThere) {
  for (std::uint64_t seed = 1; seed <= machines_as_xml; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Machine machine = random_machine(seed, Speeds::any);
    ASSERT_EQ(text_of(loaded(machine)), text_of(expected_topology(machine)));
  }
}

TEST(RandomFiles, TheOrderOfListingDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= machines_as_xml; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Machine machine = random_machine(seed, Speeds::any);
    const Topology usual = loaded(machine), other = loaded(shuffled(machine, seed));
    ASSERT_EQ(text_of(other), text_of(usual));
    ASSERT_EQ(solution(other), solution(usual));
  }
}

TEST(RandomFiles, NamesDoNotMatter) {
  for (std::uint64_t seed = 1; seed <= machines_as_xml; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Machine machine = random_machine(seed, Speeds::any);
    ASSERT_EQ(solution(loaded(renamed(machine, seed))), solution(loaded(machine)));
  }
}

TEST(RandomMachines, TheOrderOfAskingDoesNotMatter) {
  for_random_topologies({Speeds::any}, [](const Topology& topology) {
    Nics jumbled = all_nics(topology);
    std::reverse(jumbled.begin(), jumbled.end());
    if (!jumbled.empty()) jumbled.push_back(jumbled[jumbled.size() / 2]);
    for (const Place& place : places_of(topology))
      EXPECT_EQ(serving(affinity(topology, place, jumbled)),
                serving(affinity(topology, place, all_nics(topology))));
  });
}

}  // namespace
}  // namespace weft::facts
