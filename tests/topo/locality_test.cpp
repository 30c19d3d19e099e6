#include "rail/locality.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hwloc_xml.hpp"
#include "machines.hpp"
#include "topo/drive.hpp"

namespace weft::core {
namespace {

/// Of an engine for these GPUs on a known machine.
Locality look(std::string_view machine, std::vector<std::string> gpus) {
  const facts::TemporaryFile file(facts::hwloc_xml(*facts::find_machine(machine)));
  Config config;
  config.topo_xml = file.path();
  config.gpus = std::move(gpus);
  auto here = Locality::look(config);
  EXPECT_TRUE(here) << here.error().to_string();
  return std::move(here).value_or(Locality());
}

TEST(Locality, TheNicsOfTheGpusComeFirstByAddressAndName) {
  const Locality here = look("p4d", {"0000:a0:1d.0", "0000:10:1c.0"});
  auto near = here.near_nics();
  ASSERT_GE(near.size(), 4U);
  near.resize(4);
  // libfabric may know either.
  EXPECT_THAT(near,
              testing::ElementsAre("0000:a0:1b.0", "rdmap160s27", "0000:10:1b.0", "rdmap16s27"));
}

TEST(Locality, AnInterfaceOfAnRdmaNicIsWhereTheNicIs) {
  Locality here = look("dgx-h100", {});
  const auto& nics = here.topology().nics;
  const auto both = std::find_if(nics.begin(), nics.end(), [](const Nic& nic) {
    return nic.kind == NicKind::rdma && !nic.interface.empty();
  });
  ASSERT_NE(both, nics.end());
  Capability record;
  record.domain = both->interface;  // as tcp has it
  here.add_rail(record, RailKind());
  EXPECT_EQ(here.numa_node_of(0), both->numa_node);
  EXPECT_EQ(here.gbps_of(0), both->gbps);
  EXPECT_THAT(here.serving({MemoryKind::host, both->numa_node, -1}), testing::ElementsAre(0U))
      << "it is all there is";
}

TEST(Locality, TheNarrowestPartOfTheWayCounts) {
  Locality here = look("p5", {});
  const auto& topology = here.topology();
  Capability record;
  record.domain = topology.nics[preferred_nics(topology).front()].name;
  here.add_rail(record, RailKind());
  const double nic = here.gbps_of(0);
  ASSERT_GT(nic, 0);
  double least = nic;
  for (int gpu = 0; gpu < static_cast<int>(topology.gpus.size()); ++gpu) {
    const Place place{MemoryKind::device, -1, gpu};
    const std::size_t only[] = {preferred_nics(topology).front()};
    const double way = here.gbps_between(0, place);
    EXPECT_EQ(way, std::min(nic, affinity(topology, place, only).order.front().gbps));
    least = std::min(least, way);
  }
  EXPECT_GT(least, 0);

  record.domain = "elsewhere";
  record.gbps = 25;
  here.add_rail(record, RailKind());
  EXPECT_EQ(here.gbps_between(1, Place{}), 25) << "a NIC without a place has no way";
  record.gbps = 0;
  here.add_rail(record, RailKind());
  EXPECT_EQ(here.gbps_between(2, Place{}), 0);
}

TEST(Locality, FilesAreServedByTheRailsNearTheirDrive) {
  Locality here = look("p4d", {});
  const auto& topology = here.topology();
  for (const char* nic : {"rdmap16s27", "rdmap144s27", "rdmap160s27"}) {
    Capability record;
    record.domain = nic;
    here.add_rail(record, RailKind());
  }
  const auto serving = [&](const char* drive) {
    return here.serving({MemoryKind::file, -1, -1, topo::find_drive(topology, drive)});
  };
  EXPECT_THAT(serving("nvme144n1"), testing::ElementsAre(1U));
  EXPECT_THAT(serving("nvme160n1"), testing::ElementsAre(2U));
  EXPECT_THAT(serving("nvme32n1"), testing::ElementsAre(0U)) << "its own NIC was not opened";
}

TEST(Locality, ARailThatOpensIsUpWhateverItsPortWasBefore) {
  Config config;
  config.topo_xml = WEFT_TOPO_CAPTURES "/port-down.xml";
  auto here = Locality::look(config);
  ASSERT_TRUE(here) << here.error().to_string();
  EXPECT_THAT(here->near_nics(), testing::ElementsAre("0000:11:00.0", "mlx5_0"));
  Capability record;
  record.domain = "mlx5_1";
  here->add_rail(record, RailKind());
  EXPECT_THAT(here->serving({MemoryKind::host, 0, -1}), testing::ElementsAre(0U));
}

TEST(Locality, AGpuCountsOnce) {
  const Locality here = look("p4d", {"0000:a0:1d.0", "a0:1D.0"});
  EXPECT_EQ(here.gpus(), 1U);
}

}  // namespace
}  // namespace weft::core
