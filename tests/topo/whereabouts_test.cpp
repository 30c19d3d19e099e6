#include "engine/whereabouts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hwloc_xml.hpp"
#include "machines.hpp"

namespace weft::core {
namespace {

TEST(Whereabouts, TheNicsOfTheGpusComeFirstByAddressAndName) {
  const facts::TemporaryFile file(facts::hwloc_xml(*facts::find_machine("p4d")));
  Config config;
  config.topo_xml = file.path();
  config.gpus = {"0000:a0:1d.0", "0000:10:1c.0"};
  const auto here = Whereabouts::look(config);
  ASSERT_TRUE(here) << here.error().to_string();
  auto near = here->near_nics();
  ASSERT_GE(near.size(), 4U);
  near.resize(4);
  // libfabric may know either.
  EXPECT_THAT(near,
              testing::ElementsAre("0000:a0:1b.0", "rdmap160s27", "0000:10:1b.0", "rdmap16s27"));
}

}  // namespace
}  // namespace weft::core
