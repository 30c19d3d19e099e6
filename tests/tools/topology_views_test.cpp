// A machine as text, as JSON and as a graph.
#include "look/topology_views.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "command/ending.hpp"
#include "common/printable.hpp"
#include "look/graphviz.hpp"
#include "look/nic_pairing.hpp"
#include "small_machine.hpp"

namespace weft::tool {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

Names keys(const Json& json) {
  Names names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  return names;
}

std::string all_text(const Topology& topology) {
  const Machine machine = examine(topology);
  return tree_text(topology) + serving_text(machine) +
         pairing_text(pair_machines(machine, machine), machine, machine);
}

/// Whatever they stand for, these would be obeyed.
bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char each) {
    return each != '\n' && (static_cast<unsigned char>(each) < 0x20 || each == 0x7f);
  });
}

TEST(TopologyJson, HasItsKeysInOrder) {
  const Json json = to_json(examine(small_machine()));
  EXPECT_EQ(keys(json),
            (Names{"numa", "gpus", "nics", "unplaced", "networks", "switches", "drives", "notes"}));
  EXPECT_EQ(keys(json["numa"][0]),
            (Names{"id", "package", "bytes", "distances", "nics", "reason"}));
  EXPECT_EQ(keys(json["gpus"][0]),
            (Names{"pci", "name", "numa", "nics", "switch", "link_gbps", "reason", "order"}));
  EXPECT_EQ(keys(json["nics"][0]), (Names{"name", "pci", "numa", "gbps", "gpus", "kind",
                                          "interface", "switch", "link_gbps", "down"}));
  EXPECT_EQ(keys(json["drives"][0]), (Names{"name", "pci", "numa", "nics", "model", "bytes",
                                            "switch", "link_gbps", "reason", "order"}));
}

TEST(TopologyJson, SaysWhereDrivesAre) {
  Json json = to_json(examine(small_machine()))["drives"];
  ASSERT_EQ(json.size(), 2U);
  for (Json& each : json) each.erase("order");
  EXPECT_EQ(json[0], (Json{{"name", "nvme0n1"},
                           {"pci", "0000:15:00.0"},
                           {"numa", 0},
                           {"nics", {"rdmap19s0", "rdmap20s0"}},
                           {"model", "A drive"},
                           {"bytes", 3221225472},
                           {"switch", "0000:11:00.0"},
                           {"link_gbps", 63.0},
                           {"reason", "below one switch with drive nvme0n1"}}));
  EXPECT_EQ(json[1]["nics"], (Json{"rdmap35s0", "rdmap36s0"}));
  for (const char* unknown : {"model", "bytes", "link_gbps"})
    EXPECT_TRUE(json[1][unknown].is_null()) << unknown;
}

TEST(TopologyJson, SaysWhoServesWhom) {
  const Json json = to_json(examine(small_machine()));
  EXPECT_EQ(json["gpus"][0]["nics"], (Json{"rdmap19s0", "rdmap20s0"}));
  EXPECT_EQ(json["gpus"][1]["nics"], (Json{"rdmap35s0", "rdmap36s0"}));
  EXPECT_EQ(json["nics"].size(), 4U);
  EXPECT_EQ(json["nics"][0]["gpus"], (Json{"0000:12:00.0"}));
  EXPECT_EQ(json["networks"].size(), 1U);
  EXPECT_EQ(json["networks"][0]["name"], "eth0");
  EXPECT_EQ(json["numa"][1]["nics"], (Json{"rdmap35s0", "rdmap36s0"}));
  EXPECT_EQ(json["unplaced"], (Json{{{"name", "lo"}, {"reason", "it is no device"}}}));
}

TEST(TopologyJson, WhatIsUnknownIsNull) {
  Topology machine = small_machine();
  machine.nodes[0].package = machine.gpus[0].numa_node = -1;
  machine.gpus[0].link_gbps = machine.nics[1].gbps = 0;
  machine.nics[1].pci.clear();
  const Json json = to_json(examine(machine));
  EXPECT_TRUE(json["numa"][0]["package"].is_null());
  EXPECT_TRUE(json["gpus"][0]["numa"].is_null());
  EXPECT_TRUE(json["gpus"][0]["link_gbps"].is_null());
  EXPECT_TRUE(json["nics"][0]["gbps"].is_null());
  EXPECT_TRUE(json["nics"][0]["pci"].is_null());
  EXPECT_TRUE(json["nics"][0]["interface"].is_null());
}

TEST(TopologyJson, HostileNamesAreData) {
  const std::string text = dump(to_json(examine(hostile_machine())));
  EXPECT_FALSE(has_control(text));
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char each) { return each >= 0; }));
  EXPECT_NE(Json::parse(text)["nics"][0]["name"].get<std::string>().find("\x1b[31m"),
            std::string::npos);
}

TEST(TopologyText, DrawsTheTree) {
  EXPECT_EQ(tree_text(small_machine()),
            "machine\n"
            "├─ NUMA node 0, socket 0, 64.00 GiB, distances 10 21\n"
            "│  ├─ NIC eth0  0000:00:05.0  network, 25 Gb/s\n"
            "│  └─ root complex 0000:[10-1f]\n"
            "│     └─ switch 0000:11:00.0, up 252 Gb/s\n"
            "│        ├─ GPU 0  0000:12:00.0  GH100 [H100], PCIe 504 Gb/s\n"
            "│        ├─ NIC rdmap19s0  0000:13:00.0  efa, 100 Gb/s\n"
            "│        ├─ NIC rdmap20s0  0000:14:00.0  efa, 100 Gb/s\n"
            "│        └─ drive nvme0n1  0000:15:00.0  A drive, 3.00 GiB, PCIe 63 Gb/s\n"
            "└─ NUMA node 1, socket 1, 64.00 GiB, distances 21 10\n"
            "   └─ root complex 0000:[20-2f]\n"
            "      └─ switch 0000:21:00.0, up 252 Gb/s\n"
            "         ├─ GPU 1  0000:22:00.0  GH100 [H100], PCIe 504 Gb/s\n"
            "         ├─ NIC rdmap35s0  0000:23:00.0  efa, 100 Gb/s\n"
            "         ├─ NIC rdmap36s0  0000:24:00.0  efa, 100 Gb/s\n"
            "         └─ drive nvme1n1  0000:25:00.0\n");
}

TEST(TopologyText, SaysWhatToThinkOfNarrowUplinks) {
  Topology narrow = small_machine();
  EXPECT_TRUE(remarks_on_links(narrow).empty());
  for (PciSwitch& each : narrow.switches)
    if (each.above >= 0) each.uplink_gbps = 126;
  EXPECT_NE(tree_text(narrow).find("slower than the NICs below together"), std::string::npos);
  EXPECT_NE(to_dot(examine(narrow)).find("buses often report less"), std::string::npos);
}

TEST(TopologyText, SaysWhichNicsHaveANarrowLink) {
  Topology narrow = small_machine();
  narrow.nics[1].link_gbps = 63;
  narrow.nics[2].link_gbps = 126;
  const std::string text = tree_text(narrow);
  EXPECT_NE(text.find("rdmap19s0  0000:13:00.0  efa, 100 Gb/s, PCIe 63 Gb/s"), std::string::npos);
  EXPECT_NE(text.find("The PCIe link of NIC rdmap19s0 reports 63 Gb/s: the NIC counts"),
            std::string::npos)
      << text;
}

TEST(TopologyText, SaysWhichNicsAreDown) {
  Topology machine = small_machine();
  machine.nics[1].down = true;
  const Machine examined = examine(machine);
  EXPECT_NE(tree_text(machine).find("rdmap19s0  0000:13:00.0  efa, 100 Gb/s, down"),
            std::string::npos);
  EXPECT_NE(serving_text(examined).find("not used by preference: eth0 rdmap19s0 (down)"),
            std::string::npos)
      << serving_text(examined);
  EXPECT_NE(to_dot(examined).find("rdmap19s0 (down)"), std::string::npos);
  EXPECT_EQ(to_json(examined)["networks"][1]["down"], true);
  EXPECT_EQ(to_json(examined)["gpus"][0]["nics"], (Json{"rdmap20s0"}));
}

TEST(TopologyText, SaysWhoServesWhomAndWhatIsLeft) {
  const std::string text = serving_text(examine(small_machine()));
  for (const char* words : {"0  0000:12:00.0", "2 x 100 Gb/s", "rdmap35s0 rdmap36s0", "node 1",
                            "not used by preference: eth0", "lo", "it is no device",
                            "files on drive", "1  nvme1n1", "below one switch with drive nvme1n1"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST(TopologyText, HostileNamesAreSpelled) {
  const std::string text = all_text(hostile_machine());
  EXPECT_FALSE(has_control(text));
  EXPECT_NE(text.find(printable(hostile)), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

TEST(TopologyText, AMachineWithoutDevicesIsShown) {
  Topology bare;
  bare.nodes = {{0, -1, 0, {}}};
  EXPECT_EQ(tree_text(bare), "machine\n└─ NUMA node 0, 0 B\n");
  EXPECT_NE(serving_text(examine(bare)).find("none"), std::string::npos);
}

TEST(NicPairing, GivesEachSideItsShares) {
  Topology slow = small_machine();
  slow.gpus.pop_back();
  slow.nics.resize(2);
  slow.nics[1].gbps = 50;
  const Machine own = examine(small_machine()), peer = examine(slow);
  const Json json = pairing_json(pair_machines(own, peer), own, peer);
  EXPECT_EQ(keys(json), (Names{"to_peer", "from_peer", "gpus"}));
  ASSERT_EQ(json["to_peer"].size(), 4U);
  EXPECT_EQ(json["to_peer"][0],
            (Json{{"nic", "rdmap19s0"}, {"with", {{{"nic", "rdmap19s0"}, {"percent", 100.0}}}}}));
  ASSERT_EQ(json["from_peer"].size(), 1U);
  EXPECT_EQ(json["from_peer"][0]["with"].size(), 4U);
  EXPECT_EQ(json["from_peer"][0]["with"][0]["percent"], 25.0);
  ASSERT_EQ(json["gpus"].size(), 1U);
  EXPECT_EQ(json["gpus"][0]["own"], "0000:12:00.0");
  EXPECT_EQ(json["gpus"][0]["from_peer"][0]["with"].size(), 2U);
}

TEST(TopologyDot, NamesEachDeviceOnce) {
  const std::string graph = to_dot(examine(small_machine()));
  for (const char* words :
       {"gpu0 [label=", "gpu1 [label=", "unused_node0 [label=", "nic4 [label=", "<B>GPU 1</B>",
        "drive1 [label=", "252 Gb/s", "504 Gb/s", "distance\\n21"}) {
    const std::size_t first = graph.find(words);
    EXPECT_NE(first, std::string::npos) << words << "\n" << graph;
  }
  EXPECT_EQ(graph.find("nic3 [label="), graph.rfind("nic3 [label="));
}

TEST(TopologyDot, NicsHaveTheColourOfTheirGpu) {
  const std::string graph = to_dot(examine(small_machine()));
  const auto colour_of = [&](const std::string& node) {
    return graph.substr(graph.find("#", graph.find("<TD", graph.find(node + " [label="))), 7);
  };
  EXPECT_EQ(colour_of("nic1"), colour_of("gpu0"));
  EXPECT_EQ(colour_of("nic3"), colour_of("gpu1"));
  EXPECT_NE(colour_of("gpu0"), colour_of("gpu1"));
  EXPECT_NE(colour_of("unused_node0"), colour_of("gpu0"));
}

TEST(TopologyDot, HostileNamesStayInTheirLabels) {
  const std::string graph = to_dot(examine(hostile_machine()));
  EXPECT_FALSE(has_control(graph));
  EXPECT_EQ(graph.find("\"]};"), std::string::npos);
  EXPECT_EQ(graph.find("</TABLE>>\\N"), std::string::npos);
  EXPECT_NE(graph.find("&quot;]}; &lt;B&gt;&amp;amp;&lt;/TABLE&gt;&gt;\\\\N\\\\x1b[31m"),
            std::string::npos);
}

TEST(Graphviz, DrawsEvenHostileNames) {
  const auto picture = render(to_dot(examine(hostile_machine())), "svg");
  if (!picture && picture.error().code() == Code::not_found)
    GTEST_SKIP() << picture.error().message();
  ASSERT_TRUE(picture) << picture.error().message();
  EXPECT_NE(picture->find("</svg>"), std::string::npos);
  EXPECT_FALSE(has_control(*picture));
  EXPECT_EQ(picture->find("<B>"), std::string::npos);
  EXPECT_NE(picture->find("&gt;\\N\\x1b[31m"), std::string::npos) << *picture;
}

TEST(Graphviz, DrawsWhatHasNoName) {
  Topology machine = small_machine();
  for (PciSwitch& each : machine.switches) each.pci.clear();
  for (Gpu& each : machine.gpus) each.pci.clear(), each.name.clear();
  for (Nic& each : machine.nics) each.pci.clear(), each.name.clear();
  for (Drive& each : machine.drives) each.pci.clear(), each.name.clear();
  const auto picture = render(to_dot(examine(machine)), "svg");
  EXPECT_TRUE(picture || picture.error().code() == Code::not_found) << picture.error().message();
}

TEST(Graphviz, WhatIsNoGraphIsAnError) {
  const auto picture = render("no graph at all {\x1b", "svg");
  ASSERT_FALSE(picture);
  EXPECT_FALSE(has_control(picture.error().message()));
}

}  // namespace
}  // namespace weft::tool
