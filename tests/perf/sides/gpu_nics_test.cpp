// Whose NICs the engines of a point are opened for, over the CUDA driver that the loader finds and
// on a machine of which it has GPUs.
#include <gmock/gmock.h>

#include <cstdlib>

#include "hwloc_xml.hpp"
#include "machines.hpp"
#include "protocol/control.hpp"

namespace weft::perf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The machine of that name, in this one's place.
class Machine {
 public:
  explicit Machine(const char* name) : file_(facts::hwloc_xml(*facts::find_machine(name))) {
    ::setenv("WEFT_TOPO_XML", file_.path().c_str(), 1);
  }
  ~Machine() { ::unsetenv("WEFT_TOPO_XML"); }

 private:
  const facts::TemporaryFile file_;
};

Point between(const std::string& memory, const std::string& peer_memory) {
  Point point;
  point.fabric.provider = "tcp";
  point.work.size = 4096;
  point.work.memory = memory;
  point.work.peer_memory = peer_memory;
  return point;
}

std::vector<std::string> gpus_for(const std::string& memory) {
  return data_config(Site{}, between(memory, "host"), memory).value().gpus;
}

TEST(GpuNics, AreThoseOfTheSidesOwnMemory) {
  const Machine machine("p4d");
  EXPECT_THAT(gpus_for("gpu:0"), ElementsAre("0000:10:1c.0"));
  EXPECT_THAT(gpus_for("gpu:1"), ElementsAre("0000:a0:1d.0"));
  for (const char* memory : {"host", "shared", "node:0"})
    EXPECT_THAT(gpus_for(memory), IsEmpty()) << memory;
}

TEST(GpuNics, AnEngineIsOpenedForThem) {
  const Machine machine("p4d");
  const auto config = data_config(Site{}, between("gpu:1", "host"), "gpu:1");
  ASSERT_TRUE(config) << config.error().to_string();
  const auto engine = Engine::open(*config);
  ASSERT_TRUE(engine) << engine.error().to_string();
  const Info info = engine->info();
  const auto gpus = std::find_if(info.settings.begin(), info.settings.end(),
                                 [](const Setting& each) { return each.name == "gpus"; });
  ASSERT_NE(gpus, info.settings.end());
  EXPECT_EQ(gpus->value, "0000:a0:1d.0");
  EXPECT_EQ(gpus->source, Setting::Source::call);
}

/// As in a virtual machine that hides where its GPUs are plugged in.
TEST(GpuNics, AreAnyWhereTheTopologyLacksTheGpu) {
  const Machine machine("c5n");
  EXPECT_THAT(gpus_for("gpu:1"), IsEmpty());
}

TEST(GpuNics, NeedTheGpu) {
  const auto config = data_config(Site{}, between("gpu:7", "host"), "gpu:7");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code(), Code::unavailable);
  EXPECT_THAT(config.error().message(), HasSubstr("there is no GPU 7: there are 2"));
}

}  // namespace
}  // namespace weft::perf
