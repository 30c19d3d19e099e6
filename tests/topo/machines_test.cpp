// Which NICs serve which memory, on machines that are known.
#include "machines.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <weft/topology.hpp>

#include "expected.hpp"
#include "hwloc_xml.hpp"
#include "random_machine.hpp"
#include "topo/drive.hpp"

namespace weft::facts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Machine& machine(const char* name) {
  const Machine* found = find_machine(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

/// Each GPU by the end of its address, and the names of the NICs that are to serve it.
const std::map<std::string, const char*> expected_gpus = {
    {"p3dn",
     "00:16 rdmap0s21\n00:17 rdmap0s21\n00:18 rdmap0s21\n00:19 rdmap0s21\n"
     "00:1a rdmap0s21\n00:1b rdmap0s21\n00:1c rdmap0s21\n00:1d rdmap0s21\n"},
    {"p4d",
     "10:1c rdmap16s27\n10:1d rdmap16s27\n20:1c rdmap32s27\n20:1d rdmap32s27\n"
     "90:1c rdmap144s27\n90:1d rdmap144s27\na0:1c rdmap160s27\na0:1d rdmap160s27\n"},
    {"p5",
     "53:00 rdmap79s0 rdmap80s0 rdmap81s0 rdmap82s0\n"
     "64:00 rdmap96s0 rdmap97s0 rdmap98s0 rdmap99s0\n"
     "75:00 rdmap113s0 rdmap114s0 rdmap115s0 rdmap116s0\n"
     "86:00 rdmap130s0 rdmap131s0 rdmap132s0 rdmap133s0\n"
     "97:00 rdmap147s0 rdmap148s0 rdmap149s0 rdmap150s0\n"
     "a8:00 rdmap164s0 rdmap165s0 rdmap166s0 rdmap167s0\n"
     "b9:00 rdmap181s0 rdmap182s0 rdmap183s0 rdmap184s0\n"
     "ca:00 rdmap198s0 rdmap199s0 rdmap200s0 rdmap201s0\n"},
    {"p5en",
     "59:00 rdmap85s0 rdmap86s0\n5a:00 rdmap87s0 rdmap88s0\n"
     "72:00 rdmap110s0 rdmap111s0\n73:00 rdmap112s0 rdmap113s0\n"
     "8b:00 rdmap135s0 rdmap136s0\n8c:00 rdmap137s0 rdmap138s0\n"
     "a4:00 rdmap160s0 rdmap161s0\na5:00 rdmap162s0 rdmap163s0\n"},
    {"p6-b200",
     "51:00 rdmap79s0\n52:00 rdmap80s0\n62:00 rdmap96s0\n63:00 rdmap97s0\n"
     "75:00 rdmap113s0\n76:00 rdmap114s0\n86:00 rdmap132s0\n87:00 rdmap133s0\n"},
    {"p6-b300",
     "58:00 rdmap86s0 rdmap87s0\n67:00 rdmap101s0 rdmap102s0\n76:00 rdmap116s0 rdmap117s0\n"
     "85:00 rdmap131s0 rdmap132s0\n94:00 rdmap146s0 rdmap147s0\na3:00 rdmap161s0 rdmap162s0\n"
     "b2:00 rdmap176s0 rdmap177s0\nc1:00 rdmap191s0 rdmap192s0\n"},
    {"g5",
     "00:16 rdmap0s21\n00:17 rdmap0s21\n00:18 rdmap0s21\n00:19 rdmap0s21\n"
     "00:1a rdmap0s21\n00:1b rdmap0s21\n00:1c rdmap0s21\n00:1d rdmap0s21\n"},
    {"g6",  // the second four are on the other socket
     "9f:00 rdmap150s0\na1:00 rdmap150s0\na3:00 rdmap150s0\na5:00 rdmap150s0\n"
     "ae:00 rdmap150s0\nb0:00 rdmap150s0\nb2:00 rdmap150s0\nb4:00 rdmap150s0\n"},
    {"g6e",
     "49:00 rdmap72s0\n4a:00 rdmap72s0\n59:00 rdmap88s0\n5a:00 rdmap88s0\n"
     "89:00 rdmap136s0\n8a:00 rdmap136s0\n99:00 rdmap152s0\n9a:00 rdmap152s0\n"},
    {"c5n", ""},
    {"c7gn", ""},
    // In bus order, as the tree tells no more. AWS's own table has other pairs below the same root
    // complex: 10:1b and 10:1e with the first NIC of that bus.
    {"trn1",
     "10:1b rdmap16s25\n10:1c rdmap16s25\n10:1d rdmap16s26\n10:1e rdmap16s26\n"
     "20:1b rdmap32s25\n20:1c rdmap32s25\n20:1d rdmap32s26\n20:1e rdmap32s26\n"
     "90:1b rdmap144s25\n90:1c rdmap144s25\n90:1d rdmap144s26\n90:1e rdmap144s26\n"
     "a0:1b rdmap160s25\na0:1c rdmap160s25\na0:1d rdmap160s26\na0:1e rdmap160s26\n"},
    // Likewise; AWS's table has the two of each switch the other way round.
    {"trn2",
     "58:00 rdmap86s0\n59:00 rdmap87s0\n6e:00 rdmap108s0\n6f:00 rdmap109s0\n"
     "84:00 rdmap130s0\n85:00 rdmap131s0\n9a:00 rdmap152s0\n9b:00 rdmap153s0\n"
     "b5:00 rdmap179s0\nb6:00 rdmap180s0\ncb:00 rdmap201s0\ncc:00 rdmap202s0\n"
     "e1:00 rdmap223s0\ne2:00 rdmap224s0\nf7:00 rdmap245s0\nf8:00 rdmap246s0\n"},
    {"dgx-h100",
     "1b:00 mlx5_0\n43:00 mlx5_3\n52:00 mlx5_4\n61:00 mlx5_5\n"
     "9d:00 mlx5_6\nc3:00 mlx5_9\nd1:00 mlx5_10\ndf:00 mlx5_11\n"},
    {"desktop", "03:00 enp5s0\n83:00 enp5s0\n"},
    {"laptop", "01:00 wlp0s20f3\n"},
    {"vm", ""},
    {"container",  // all know their NICs, though half of them not their socket
     "10:1c rdmap16s27\n10:1d rdmap16s27\n20:1c rdmap32s27\n20:1d rdmap32s27\n"
     "90:1c rdmap144s27\n90:1d rdmap144s27\na0:1c rdmap160s27\na0:1d rdmap160s27\n"},
};

std::vector<std::string> serving(const Topology& topology, const Place& place) {
  const Affinity found = affinity(topology, place, preferred_nics(topology));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found.serving; ++i)
    names.push_back(topology.nics[found.order[i].nic].name);
  return names;
}

std::string gpus_and_nics(const Topology& topology) {
  std::string text;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    text += topology.gpus[i].pci.substr(5, 5);
    for (const std::string& nic : serving(topology, {MemoryKind::device, -1, static_cast<int>(i)}))
      text += " " + nic;
    text += "\n";
  }
  return text;
}

class KnownMachine : public testing::TestWithParam<std::string> {
 protected:
  const Machine& given = machine(GetParam().c_str());
};

INSTANTIATE_TEST_SUITE_P(
    All, KnownMachine,
    [] {
      std::vector<std::string> names;
      for (const Machine& each : machines()) names.push_back(each.name);
      return testing::ValuesIn(names);
    }(),
    [](const auto& of) {
      std::string name = of.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_P(KnownMachine, IsReadAsItIs) {
  EXPECT_EQ(text_of(loaded(given)), text_of(expected_topology(given)));
}

TEST_P(KnownMachine, GpusAreServedByTheirNearestNics) {
  const auto expected = expected_gpus.find(given.name == "p5e" ? "p5" : given.name);
  ASSERT_NE(expected, expected_gpus.end()) << "a machine without a table";
  EXPECT_EQ(gpus_and_nics(loaded(given)), expected->second);
}

TEST_P(KnownMachine, IsTheSameHoweverItIsListed) {
  const std::string usual = text_of(loaded(given));
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(text_of(loaded(shuffled(given, seed))), usual) << "shuffled by " << seed;
}

TEST(KnownMachines, FilesAreServedByTheNearestNicsOfTheirDrive) {
  const struct {
    const char *name, *drive;
    std::vector<std::string> nics;
  } drives[] = {
      {"p4d", "nvme32n1", {"rdmap32s27"}},
      {"p4d", "nvme160n1", {"rdmap160s27"}},
      {"p5", "nvme84n1", {"rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0"}},
      {"p5", "nvme203n1", {"rdmap198s0", "rdmap199s0", "rdmap200s0", "rdmap201s0"}},
  };
  for (const auto& each : drives) {
    SCOPED_TRACE(each.drive);
    const Topology topology = loaded(machine(each.name));
    const int drive = topo::find_drive(topology, each.drive);
    ASSERT_GE(drive, 0);
    EXPECT_EQ(serving(topology, {MemoryKind::file, -1, -1, drive}), each.nics);
  }
}

TEST(KnownMachines, HostMemoryIsServedByWhatItsNodeCanCarry) {
  const struct {
    const char* name;
    std::vector<std::string> node0, node1;
  } machines_[] = {
      {"p3dn", {"rdmap0s21"}, {"rdmap0s21"}},
      {"p4d", {"rdmap16s27", "rdmap32s27"}, {"rdmap144s27", "rdmap160s27"}},
      // The link above a switch carries one of its NICs.
      {"p5",
       {"rdmap79s0", "rdmap96s0", "rdmap113s0", "rdmap130s0"},
       {"rdmap147s0", "rdmap164s0", "rdmap181s0", "rdmap198s0"}},
      // Two of four.
      {"p5en",
       {"rdmap85s0", "rdmap86s0", "rdmap110s0", "rdmap111s0"},
       {"rdmap135s0", "rdmap136s0", "rdmap160s0", "rdmap161s0"}},
      {"p6-b200", {"rdmap79s0", "rdmap96s0"}, {"rdmap113s0", "rdmap132s0"}},
      {"p6-b300",
       {"rdmap86s0", "rdmap101s0", "rdmap116s0", "rdmap131s0"},
       {"rdmap146s0", "rdmap161s0", "rdmap176s0", "rdmap191s0"}},
      {"g6", {"rdmap150s0"}, {"rdmap150s0"}},
      {"c5n", {"rdmap0s31"}, {"rdmap0s31"}},
      {"desktop", {"enp5s0"}, {"enp5s0"}},
  };
  for (const auto& each : machines_) {
    SCOPED_TRACE(each.name);
    const Topology topology = loaded(machine(each.name));
    EXPECT_EQ(serving(topology, {MemoryKind::host, 0, -1}), each.node0);
    EXPECT_EQ(serving(topology, {MemoryKind::host, 1, -1}), each.node1);
  }
}

TEST(KnownMachines, MemoryOfAnUnknownNodeIsServedByTheNicsOfAllNodes) {
  for (const Machine& each : machines()) {
    SCOPED_TRACE(each.name);
    const Topology topology = loaded(each);
    std::vector<std::string> all;
    for (const NumaNode& node : topology.nodes)
      for (const std::string& nic : serving(topology, {MemoryKind::host, node.id, -1}))
        if (std::find(all.begin(), all.end(), nic) == all.end()) all.push_back(nic);
    EXPECT_THAT(serving(topology, {MemoryKind::host, -1, -1}),
                testing::UnorderedElementsAreArray(all));
    EXPECT_THAT(serving(topology, {MemoryKind::host, 77, -1}),
                testing::UnorderedElementsAreArray(all));
    EXPECT_THAT(serving(topology, {MemoryKind::device, -1, 1000}),
                testing::UnorderedElementsAreArray(all));
  }
}

TEST(KnownMachines, AFarNicCostsMore) {
  const Topology topology = loaded(machine("g6"));
  const auto cost = [&](int gpu) {
    return affinity(topology, {MemoryKind::device, -1, gpu}, preferred_nics(topology)).order.at(0);
  };
  EXPECT_EQ(cost(0).nearness, Nearness::pci_switch);
  EXPECT_EQ(cost(7).nearness, Nearness::machine);
  EXPECT_GT(cost(7).cost, cost(0).cost);
}

TEST(KnownMachines, NicsOfFabricsArePreferredToMereInterfaces) {
  const auto names = [](const char* name) {
    const Topology topology = loaded(machine(name));
    std::vector<std::string> preferred;
    for (const std::size_t nic : preferred_nics(topology))
      preferred.push_back(topology.nics[nic].name);
    return preferred;
  };
  EXPECT_THAT(names("c5n"), ElementsAre("rdmap0s31"));
  EXPECT_EQ(names("p5").size(), 32U);
  EXPECT_EQ(names("dgx-h100").size(), 12U) << "those for storage too";
  EXPECT_THAT(names("desktop"), ElementsAre("enp5s0"));
  EXPECT_THAT(names("vm"), IsEmpty());
}

TEST(KnownMachines, NothingIsServedWhereThereIsNoNic) {
  const Topology topology = loaded(machine("vm"));
  EXPECT_EQ(topology.nodes.size(), 1U);
  const Affinity found = affinity(topology, {}, preferred_nics(topology));
  EXPECT_THAT(found.order, IsEmpty());
  EXPECT_EQ(found.serving, 0U);
  EXPECT_NE(found.reason, "");
}

TEST(KnownMachines, ALostNicIsMadeUpForByItsOwnGpuAlone) {
  const Topology topology = loaded(machine("p6-b200"));
  const auto nics = preferred_nics(topology);
  const std::vector<std::size_t> lost = {nics[1]};  // of the second GPU
  const auto of_gpu = [&](int gpu) {
    std::vector<std::string> names;
    const Affinity found = affinity(topology, {MemoryKind::device, -1, gpu}, nics, lost);
    for (std::size_t i = 0; i < found.serving; ++i)
      names.push_back(topology.nics[found.order[i].nic].name);
    return names;
  };
  EXPECT_THAT(of_gpu(0), ElementsAre("rdmap79s0"));
  EXPECT_THAT(of_gpu(1), ElementsAre("rdmap79s0"));
  EXPECT_THAT(of_gpu(2), ElementsAre("rdmap96s0"));
}

// How long the largest of them takes: to be looked at, not to be relied upon.
TEST(KnownMachines, TimeToReadAndSolveP5) {
  const TemporaryFile file(hwloc_xml(machine("p5")));
  const auto start = std::chrono::steady_clock::now();
  const auto topology = load_topology(file.path());
  ASSERT_TRUE(topology) << topology.error().message();
  const auto read = std::chrono::steady_clock::now();
  EXPECT_NE(gpus_and_nics(*topology), "");
  for (const NumaNode& node : topology->nodes)
    EXPECT_FALSE(serving(*topology, {MemoryKind::host, node.id, -1}).empty());
  const auto solved = std::chrono::steady_clock::now();
  const auto milliseconds = [](auto duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  fmt::print("p5: read in {:.1f} ms, solved in {:.1f} ms\n", milliseconds(read - start),
             milliseconds(solved - read));
  RecordProperty("read_ms", fmt::format("{:.1f}", milliseconds(read - start)));
  RecordProperty("solve_ms", fmt::format("{:.1f}", milliseconds(solved - read)));
}

}  // namespace
}  // namespace weft::facts
