#include "look/device_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "small_machine.hpp"

namespace weft::tool {
namespace {

/// "machine(node0(nic0 switch0(…)) …)".
std::string written(const Branch& branch) {
  const char* kinds[] = {"machine", "package", "node", "elsewhere",
                         "switch",  "gpu",     "nic",  "drive"};
  std::string below;
  for (const Branch& each : branch.below) below += (below.empty() ? "" : " ") + written(each);
  const char* kind = kinds[static_cast<int>(branch.part)];
  return below.empty() ? fmt::format("{}{}", kind, branch.index)
                       : fmt::format("{}{}({})", kind, branch.index, below);
}

TEST(DeviceTree, HoldsEachPartOnce) {
  EXPECT_EQ(written(device_tree(small_machine())),
            "machine0(node0(nic0 switch0(switch1(gpu0 nic1 nic2 drive0))) "
            "node1(switch2(switch3(gpu1 nic3 nic4 drive1))))");
}

TEST(DeviceTree, WhatHasNoNodeIsElsewhere) {
  Topology machine = small_machine();
  machine.nics[0].numa_node = -1;
  machine.switches[2].numa_node = 7;  // There is no such node.
  EXPECT_EQ(written(device_tree(machine)),
            "machine0(node0(switch0(switch1(gpu0 nic1 nic2 drive0))) node1 "
            "elsewhere0(nic0 switch2(switch3(gpu1 nic3 nic4 drive1))))");
}

TEST(DeviceTree, NodesOfOnePackageAreTogether) {
  Topology machine;
  machine.nodes = {{0, 0, 1, {}}, {1, 0, 1, {}}, {2, 1, 1, {}}, {3, -1, 1, {}}, {4, -1, 1, {}}};
  EXPECT_EQ(written(device_tree(machine)), "machine0(node3 node4 package0(node0 node1) node2)");
}

}  // namespace
}  // namespace weft::tool
