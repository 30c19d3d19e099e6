// What is to be served and what not, on a few devices that are easy to see through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/topology.hpp>

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsSubsetOf;

/// A switch on each of two nodes, each with a GPU and two NICs. Cards of 100 Gb/s.
Topology two_switches() {
  Topology topology;
  topology.nodes = {{0, 0, 1 << 30, {10, 21}}, {1, 1, 1 << 30, {21, 10}}};
  topology.switches = {{"0000:[00-0f]", -1, 0, 0},
                       {"0000:00:00.0", 0, 0, 500},
                       {"0000:[10-1f]", -1, 1, 0},
                       {"0000:10:00.0", 2, 1, 500}};
  topology.gpus = {{"0000:01:00.0", "GPU", 1, 0, 500}, {"0000:11:00.0", "GPU", 3, 1, 500}};
  topology.nics = {{NicKind::rdma, "a", "", "0000:01:01.0", 1, 0, 100},
                   {NicKind::rdma, "b", "", "0000:01:02.0", 1, 0, 100},
                   {NicKind::rdma, "c", "", "0000:11:01.0", 3, 1, 100},
                   {NicKind::rdma, "d", "", "0000:11:02.0", 3, 1, 100}};
  return topology;
}

std::vector<std::size_t> serving(const Affinity& found) {
  std::vector<std::size_t> nics;
  for (std::size_t i = 0; i < found.serving; ++i) nics.push_back(found.order[i].nic);
  return nics;
}

std::vector<std::size_t> serving_gpu(const Topology& topology, int gpu,
                                     const std::vector<std::size_t>& missing = {}) {
  return serving(
      affinity(topology, {MemoryKind::device, -1, gpu}, preferred_nics(topology), missing));
}

TEST(Affinity, NearNicsServe) {
  const Topology topology = two_switches();
  EXPECT_THAT(serving_gpu(topology, 0), ElementsAre(0, 1));
  EXPECT_THAT(serving_gpu(topology, 1), ElementsAre(2, 3));
}

TEST(Affinity, FarNicsServeWhereNearOnesAreMuchSlower) {
  Topology topology = two_switches();
  topology.nics[0].gbps = topology.nics[1].gbps = 1;
  EXPECT_THAT(serving_gpu(topology, 0), IsSubsetOf({2, 3}));
  EXPECT_FALSE(serving_gpu(topology, 0).empty());
  EXPECT_THAT(serving_gpu(topology, 1), IsSubsetOf({2, 3}));
}

TEST(Affinity, ALittleSlowerNearNicsStillServe) {
  Topology topology = two_switches();
  topology.nics[0].gbps = topology.nics[1].gbps = 80;
  EXPECT_THAT(serving_gpu(topology, 0), ElementsAre(0, 1));
}

TEST(Affinity, OnlyTheNicsThatAreAskedForCount) {
  const Topology topology = two_switches();
  const std::vector<std::size_t> far = {3};
  const Affinity found = affinity(topology, {MemoryKind::device, -1, 0}, far);
  ASSERT_EQ(found.order.size(), 1U);
  EXPECT_EQ(found.order[0].nic, 3U);
  EXPECT_EQ(found.serving, 1U);
}

TEST(Affinity, AskingInAnyOrderOrTwiceOrForTooManyIsTheSame) {
  const Topology topology = two_switches();
  const std::vector<std::size_t> jumbled = {2, 0, 3, 77, 1, 0};
  const Affinity found = affinity(topology, {MemoryKind::device, -1, 0}, jumbled);
  EXPECT_EQ(found.order.size(), 4U);
  EXPECT_THAT(serving(found), ElementsAre(0, 1));
}

TEST(Affinity, LostNicsMoveNobodyElse) {
  const Topology topology = two_switches();
  EXPECT_THAT(serving_gpu(topology, 0, {0}), ElementsAre(1));
  EXPECT_THAT(serving_gpu(topology, 0, {0, 1}), ElementsAre(2, 3));
  EXPECT_THAT(serving_gpu(topology, 1, {0, 1}), ElementsAre(2, 3));
  EXPECT_THAT(serving_gpu(topology, 0, {0, 1, 2, 3}), ElementsAre());
}

TEST(Affinity, AGpuWithoutNicsTakesNoneFromThoseThatHaveTheirOwn) {
  Topology topology = two_switches();
  // On the node of the first switch, with nothing else on its root complex.
  topology.switches.insert(topology.switches.begin(), {"0000:[00-00]", -1, 0, 0});
  for (PciSwitch& each : topology.switches)
    if (each.above >= 0) ++each.above;
  for (Gpu& each : topology.gpus) ++each.pci_switch;
  for (Nic& each : topology.nics) ++each.pci_switch;
  topology.gpus.insert(topology.gpus.begin(), {"0000:00:01.0", "GPU", 0, 0, 500});
  EXPECT_THAT(serving_gpu(topology, 1), ElementsAre(0, 1));
  EXPECT_FALSE(serving_gpu(topology, 0).empty());
}

/// With two drives on the first switch, and one on the other.
Topology with_drives() {
  Topology topology = two_switches();
  topology.drives = {{"nvme0n1", "0000:01:03.0", "", 0, 1, 0, 60},
                     {"nvme1n1", "0000:01:04.0", "", 0, 1, 0, 60},
                     {"nvme2n1", "0000:11:03.0", "", 0, 3, 1, 60}};
  return topology;
}

std::vector<std::size_t> serving_drive(const Topology& topology, int drive,
                                       const std::vector<std::size_t>& missing = {}) {
  return serving(
      affinity(topology, {MemoryKind::file, -1, -1, drive}, preferred_nics(topology), missing));
}

TEST(Affinity, DrivesShareTheNicsOfTheirSwitch) {
  const Topology topology = with_drives();
  EXPECT_THAT(serving_drive(topology, 0), ElementsAre(0));
  EXPECT_THAT(serving_drive(topology, 1), ElementsAre(1));
  EXPECT_THAT(serving_drive(topology, 2), ElementsAre(2, 3));
  EXPECT_THAT(serving_drive(topology, 2, {2, 3}), ElementsAre(0, 1));
}

TEST(Affinity, DrivesTakeNothingFromGpus) {
  const Topology topology = with_drives();
  EXPECT_THAT(serving_gpu(topology, 0), ElementsAre(0, 1));
  EXPECT_THAT(serving_gpu(topology, 1), ElementsAre(2, 3));
}

TEST(Affinity, FilesOnSeveralDrivesOfANodeAreServedByItsNics) {
  const Topology topology = with_drives();
  const auto nics = preferred_nics(topology);
  EXPECT_THAT(serving(affinity(topology, {MemoryKind::file, 1, -1, -1}, nics)), ElementsAre(2, 3));
  EXPECT_THAT(affinity(topology, {MemoryKind::file, -1, -1, 2}, nics).reason,
              testing::HasSubstr("below one switch with drive nvme2n1"));
}

TEST(Affinity, EveryChoiceHasAReason) {
  const Topology topology = two_switches();
  const auto nics = preferred_nics(topology);
  for (const Place& place :
       {Place{MemoryKind::host, -1, -1}, Place{MemoryKind::host, 0, -1},
        Place{MemoryKind::host, 9, -1}, Place{MemoryKind::device, -1, 0},
        Place{MemoryKind::device, -1, 9}, Place{MemoryKind::file, -1, -1, 9}}) {
    EXPECT_NE(affinity(topology, place, nics).reason, "");
    EXPECT_NE(affinity(topology, place, {}).reason, "");
  }
}

TEST(Affinity, AnEmptyTopologyServesNothing) {
  const Affinity found = affinity(Topology(), {}, preferred_nics(Topology()));
  EXPECT_EQ(found.serving, 0U);
  EXPECT_TRUE(found.order.empty());
}

}  // namespace
}  // namespace weft
