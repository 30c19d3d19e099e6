// Small captures of machines that were once answered wrongly, or refused without a reason; and
// others of the same kinds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <weft/topology.hpp>

#include "hwloc_xml.hpp"

namespace weft::facts {
namespace {

using testing::HasSubstr;

std::string path_of(const std::string& capture) {
  return std::string(WEFT_TOPO_CAPTURES) + "/" + capture + ".xml";
}

std::string text_in(const std::string& capture) {
  std::ifstream file(path_of(capture));
  return {std::istreambuf_iterator<char>(file), {}};
}

Topology load(const std::string& path) {
  auto topology = load_topology(path);
  EXPECT_TRUE(topology) << topology.error().message();
  return std::move(topology).value_or(Topology());
}

std::string served_by(const Topology& topology, const Place& place) {
  Affinity found = affinity(topology, place, preferred_nics(topology));
  found.order.resize(found.serving);
  std::string names;
  for (const NicCost& each : found.order) names += " " + topology.nics[each.nic].name;
  return names + "\n";
}

/// A line for each GPU and node, with the NICs that serve it, and one for each NIC that is down.
std::string answers(const Topology& topology) {
  std::string text;
  for (std::size_t gpu = 0; gpu < topology.gpus.size(); ++gpu)
    text += topology.gpus[gpu].pci.substr(5, 5) +
            served_by(topology, {MemoryKind::device, -1, static_cast<int>(gpu)});
  for (const NumaNode& node : topology.nodes)
    text += fmt::format("node {}", node.id) + served_by(topology, {MemoryKind::host, node.id, -1});
  for (const Nic& nic : topology.nics)
    if (nic.down) text += nic.name + " is down\n";
  return text;
}

std::string answers_of(const std::string& capture) {
  return answers(load(path_of(capture)));
}

TEST(Captures, TheLinkOfANicOfUnknownSpeedCounts) {
  EXPECT_EQ(answers_of("gpu-gets-management-nic"), "11:00 hsi0\n22:00 hsi0\nnode 0 hsi0\n");
  EXPECT_EQ(answers_of("slow-ports-beside-fast"), "node 0 mlx5_0 mlx5_1\n");
}

TEST(Captures, AManagementPortIsNoGpusNic) {
  EXPECT_EQ(answers_of("management-port-beside-efa"),
            "14:00 rdmap18s0\n15:00 rdmap19s0\nnode 0 rdmap18s0 rdmap19s0\n");
  EXPECT_EQ(answers_of("management-port-of-unknown-speed"),
            "12:00 mlx5_1\n13:00 mlx5_1\n22:00 mlx5_2\nnode 0 mlx5_1 mlx5_2\n");
  EXPECT_EQ(answers_of("management-port-below-switch"), "12:00 hsi0\n13:00 hsi0\nnode 0 hsi0\n");
  EXPECT_EQ(answers_of("management-port-alone-at-gpu"), "12:00 hsi0\n22:00 hsi0\nnode 0 hsi0\n");
}

TEST(Captures, PortsThatAreDownServeNothing) {
  EXPECT_EQ(answers_of("port-down"), "node 0 mlx5_0\nmlx5_1 is down\n");
  EXPECT_EQ(answers_of("one-port-of-two-down"),
            "14:00 mlx5_0 mlx5_2 mlx5_3\nnode 0 mlx5_0 mlx5_2 mlx5_3\nmlx5_1 is down\n");
  EXPECT_EQ(answers_of("all-ports-down"),
            "node 0 ens1\nmlx5_0 is down\nmlx5_1 is down\nmlx5_2 is down\nens2 is down\n");
}

TEST(Captures, ANicThatIsDownServesEvenThoseWhoAskForItNothing) {
  const Topology topology = load(path_of("port-down"));
  const std::size_t both[] = {0, 1}, down[] = {1};
  EXPECT_EQ(affinity(topology, {}, both).order.size(), 1U);
  EXPECT_EQ(affinity(topology, {}, down).serving, 0U);
}

TEST(Captures, DisplayChipsAreNoGpus) {
  EXPECT_EQ(answers_of("es1000-display-takes-nics"), "11:00 mlx5_0 mlx5_1\nnode 0 mlx5_0 mlx5_1\n");
  std::vector<std::string> gpus;
  for (const Gpu& gpu : load(path_of("display-chips")).gpus) gpus.push_back(gpu.pci.substr(5, 2));
  EXPECT_THAT(gpus, testing::ElementsAre("18", "19", "1a", "1b", "1c"));
}

TEST(Captures, AnEfaNicMayBeSlowerThanOthersOfItsModel) {
  std::vector<double> speeds;
  for (const Nic& nic : load(path_of("speeds-of-efa")).nics) speeds.push_back(nic.gbps);
  EXPECT_THAT(speeds, testing::ElementsAre(50, 100, 100, 200));
}

TEST(Captures, WhatALinkReportsDropsNoNicOfKnownSpeed) {
  EXPECT_EQ(answers_of("links-that-report-too-little"),
            "32:00 rdmap49s0\nnode 0 rdmap17s0 rdmap33s0 rdmap49s0 rdmap65s0\n");
  std::vector<double> links;
  for (const Nic& nic : load(path_of("links-that-report-too-little")).nics)
    links.push_back(std::round(nic.link_gbps));
  EXPECT_THAT(links, testing::ElementsAre(8, 126, 252, 252));
}

/// Of memory of node 0: what is made of links on the way, a line each.
std::string notes_of(const Topology& topology) {
  std::string text;
  for (const std::string& note :
       affinity(topology, {MemoryKind::host, 0, -1}, preferred_nics(topology)).notes)
    text += note + "\n";
  return text;
}

TEST(Captures, ANicTakesNoMoreOfAnUplinkThanItsOwnLinkCarries) {
  const Topology topology = load(path_of("efa3-x8-links"));
  EXPECT_EQ(answers(topology), "node 0 rdmap18s0 rdmap19s0\n");
  EXPECT_EQ(
      std::round(
          affinity(topology, {MemoryKind::host, 0, -1}, preferred_nics(topology)).order[0].gbps),
      252);
  EXPECT_EQ(
      notes_of(topology),
      "the PCIe link of NIC rdmap18s0 reports 252 Gb/s: the NIC counts as that, not as 400 Gb/s\n"
      "the PCIe link of NIC rdmap19s0 reports 252 Gb/s: the NIC counts as that, not as 400 Gb/s\n");
}

// All switches report the same little: there is no machine like that.
TEST(Captures, AnUplinkSlowerThanOneNicBehindItIsNotBelieved) {
  const Topology topology = load(path_of("uplinks-slower-than-a-nic"));
  EXPECT_EQ(answers(topology), "node 0 rdmap18s0 rdmap19s0 rdmap34s0 rdmap35s0\n");
  EXPECT_EQ(notes_of(topology),
            "the uplink of switch 0000:10:00.0 reports 16 Gb/s, less than one NIC behind it "
            "(400 Gb/s): not believed\n"
            "the uplink of switch 0000:20:00.0 reports 16 Gb/s, less than one NIC behind it "
            "(400 Gb/s): not believed\n");
}

// A link that came up slower than it can, beside one that did not.
TEST(Captures, AnUplinkSlowerThanItsLikeIsBelieved) {
  const Topology topology = load(path_of("one-uplink-slower-than-a-nic"));
  EXPECT_EQ(answers(topology), "node 0 rdmap34s0\n");
  EXPECT_THAT(notes_on_links(topology),
              testing::ElementsAre("the uplink of switch 0000:10:00.0 reports 16 Gb/s, less than "
                                   "one NIC behind it (400 Gb/s): believed, since a switch like it "
                                   "reports more"));
}

TEST(Captures, ALinkOfLessThanHalfOfItsNicIsNotBelieved) {
  EXPECT_EQ(
      notes_of(load(path_of("links-that-report-too-little"))),
      "the PCIe link of NIC rdmap17s0 reports 8 Gb/s, less than half of the NIC's 200 Gb/s: "
      "not believed\n"
      "the PCIe link of NIC rdmap33s0 reports 126 Gb/s: the NIC counts as that, not as 200 Gb/s\n"
      "the uplink of switch 0000:30:00.0 reports 63 Gb/s, less than one NIC behind it "
      "(200 Gb/s): not believed\n");
}

TEST(Captures, SocketsInGroupsKeepTheirPlaces) {
  EXPECT_EQ(answers_of("sockets-in-groups"),
            "11:00 mlx5_0\n21:00 mlx5_1\n"
            "node 0 mlx5_0\nnode 1 mlx5_0\nnode 2 mlx5_1\nnode 3 mlx5_1\n");
  EXPECT_EQ(answers_of("group-of-sockets-without-distances"),
            "11:00 mlx5_0\n21:00 mlx5_1\n"
            "node 0 mlx5_0\nnode 1 mlx5_0 mlx5_1\nnode 2 mlx5_1\nnode 3 mlx5_0 mlx5_1\n");
}

/// A line for each drive, with the NICs that serve its files.
std::string drives_of(const Topology& topology) {
  std::string text;
  for (std::size_t at = 0; at < topology.drives.size(); ++at) {
    const Drive& drive = topology.drives[at];
    text += fmt::format("{} {} '{}' {} node {}:", drive.name, drive.pci.substr(5, 5), drive.model,
                        drive.bytes, drive.numa_node) +
            served_by(topology, {MemoryKind::file, -1, -1, static_cast<int>(at)});
  }
  return text;
}

// sda is as near to mlx5_0, which has others to serve. nvme0n1 has two ports; nvme3n1 might have,
// and uses one. What holds a medium or a tape is no drive, nor is what is not on the PCI bus.
TEST(Captures, DrivesHavePlaces) {
  EXPECT_EQ(drives_of(load(path_of("drives"))),
            "sda 00:17 '' 0 node 0: mlx5_1\n"
            "nvme1n1 14:00 'A drive of two namespaces' 3840755982336 node 0: mlx5_0\n"
            "nvme1n2 14:00 'A drive of two namespaces' 1073741824 node 0: mlx5_0\n"
            "nvme0n1 81:00 '' 0 node 1: mlx5_2\n"
            "nvme3n1 82:00 '' 0 node 1: mlx5_2\n"
            "nvme0n1 83:00 '' 0 node 1: mlx5_2\n");
}

TEST(Captures, CommentsAreNoReasonToRefuse) {
  EXPECT_EQ(answers_of("comments-before-document"), "11:00 rdmap18s0\nnode 0 rdmap18s0\n");
  const std::string licence = "<!-- A licence, with <topology version=\"9\"> and > in it -->";
  const std::string whole = text_in("port-down");
  const std::size_t type = whole.find("<!DOCTYPE"), root = whole.find("<topology");
  for (const std::size_t at : {std::size_t{0}, type, root, whole.find("<object"), whole.size()})
    for (const std::string space : {"", "\n", "\r\n\n  "}) {
      SCOPED_TRACE(fmt::format("a comment at {}, then {} bytes of space", at, space.size()));
      const TemporaryFile file(std::string(whole).insert(at, licence + space + licence));
      EXPECT_EQ(answers(load(file.path())), "node 0 mlx5_0\nmlx5_1 is down\n");
    }
}

/// The sentence with which a file is refused; empty if it is not.
std::string refusal_of(const std::string& path) {
  const auto topology = load_topology(path);
  EXPECT_TRUE(topology || topology.error().code() == Code::invalid_argument);
  return topology ? "" : topology.error().message();
}

TEST(Captures, AnotherFormatIsRefusedByItsName) {
  EXPECT_THAT(refusal_of(path_of("version-3")),
              testing::AllOf(HasSubstr("version 3.0"), HasSubstr("lstopo --export-xml-flags v2")));
  EXPECT_THAT(refusal_of(path_of("nccl-format")),
              testing::AllOf(HasSubstr("NCCL's format"), HasSubstr("lstopo")));
  const TemporaryFile page("<?xml version=\"1.0\"?>\n<!-- topology --><html><body/></html>\n");
  EXPECT_THAT(refusal_of(page.path()), HasSubstr("<html>"));
  const TemporaryFile json("{\"topology\": []}");
  EXPECT_THAT(refusal_of(json.path()), HasSubstr("no XML"));
  const TemporaryFile open("<!-- a comment that does not end\n" + text_in("port-down"));
  EXPECT_NE(refusal_of(open.path()), "");
}

}  // namespace
}  // namespace weft::facts
