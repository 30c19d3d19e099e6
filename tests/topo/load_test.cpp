// Files that are not what they should be, and this machine itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <weft/topology.hpp>

#include "expected.hpp"
#include "hwloc_xml.hpp"
#include "machines.hpp"

namespace weft::facts {
namespace {

using testing::HasSubstr;

std::string p5_xml() {
  return hwloc_xml(*find_machine("p5"));
}

/// The sentence with which a file of this content is refused; empty if it is not.
std::string refusal(const std::string& text) {
  const TemporaryFile file(text);
  const auto topology = load_topology(file.path());
  if (topology) return "";
  EXPECT_THAT(topology.error().message(), HasSubstr(file.path()));
  return topology.error().message();
}

TEST(LoadTopology, AMissingFileIsNotFound) {
  const auto topology = load_topology("/nowhere/machine.xml");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code(), Code::not_found);
  EXPECT_THAT(topology.error().message(), HasSubstr("/nowhere/machine.xml"));
}

TEST(LoadTopology, AFolderIsNoFile) {
  const auto topology = load_topology(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(topology);
  EXPECT_NE(topology.error().message(), "");
}

TEST(LoadTopology, WhatIsNotXmlIsRefused) {
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("weft\n"), "");
  EXPECT_NE(refusal("{\"topology\": []}"), "");
  EXPECT_NE(refusal(std::string(4096, '\0')), "");
  EXPECT_NE(refusal(std::string(4096, '<')), "");
}

TEST(LoadTopology, OtherXmlIsRefused) {
  EXPECT_NE(refusal("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<html><body/></html>\n"), "");
}

TEST(LoadTopology, ATruncatedFileIsRefused) {
  const std::string whole = p5_xml();
  const std::string end = "</topology>\n";
  ASSERT_EQ(whole.substr(whole.size() - end.size()), end);
  for (int part = 1; part < 50; ++part)
    EXPECT_NE(refusal(whole.substr(0, whole.size() * static_cast<std::size_t>(part) / 50)), "")
        << part << " parts of 50";
}

TEST(LoadTopology, ADamagedFileDoesNoHarm) {
  const std::string whole = p5_xml();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i)
      damaged[random() % damaged.size()] = static_cast<char>(' ' + random() % 95);
    const TemporaryFile file(damaged);
    const auto topology = load_topology(file.path());
    if (!topology) continue;
    for (std::size_t gpu = 0; gpu < topology->gpus.size(); ++gpu)
      affinity(*topology, {MemoryKind::device, -1, static_cast<int>(gpu)},
               preferred_nics(*topology));
  }
}

TEST(LoadTopology, HwlocsFirstFormatIsRefusedOrUnderstood) {
  const std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n"
      "<topology>\n"
      "  <object type=\"Machine\" os_index=\"0\" cpuset=\"0x00000001\""
      " complete_cpuset=\"0x00000001\" online_cpuset=\"0x00000001\""
      " allowed_cpuset=\"0x00000001\" local_memory=\"1024\">\n"
      "    <object type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\""
      " complete_cpuset=\"0x00000001\" online_cpuset=\"0x00000001\""
      " allowed_cpuset=\"0x00000001\"/>\n"
      "  </object>\n"
      "</topology>\n";
  const TemporaryFile file(text);
  const auto topology = load_topology(file.path());
  if (topology) {
    EXPECT_EQ(topology->nodes.size(), 1U);
  } else {
    EXPECT_THAT(topology.error().message(), HasSubstr("version 2"));
  }
}

TEST(LoadTopology, ALongListOfDevicesIsRead) {
  Machine machine = *find_machine("laptop");
  Function& root = machine.roots[0];
  for (unsigned bus = 2; bus < 0xff; ++bus)
    for (unsigned slot = 0; slot < 32; ++slot)
      root.below.push_back({address(bus, slot),
                            "0200",
                            "8086:1563",
                            gen3_x4,
                            "",
                            {{Kind::network, fmt::format("e{}x{}", bus, slot), 10}}});
  EXPECT_EQ(loaded(machine).nics.size(), 253 * 32 + 1);
}

/// An object within an object, and so on.
std::string nested(std::size_t depth) {
  std::string text = p5_xml();
  const std::size_t end = text.rfind("  </object>");
  std::string open, close;
  for (std::size_t i = 0; i < depth; ++i) {
    open += R"(<object type="Misc" name="m" gp_index="9">)";
    close += "</object>";
  }
  return text.insert(end, open + close + "\n");
}

// hwloc reads by recursion.
TEST(LoadTopologyDeathTest, ADeeplyNestedFileDoesNoHarm) {
  for (const std::size_t depth : {100U, 10000U, 1000000U}) {
    SCOPED_TRACE(depth);
    EXPECT_EXIT(
        {
          refusal(nested(depth));
          std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(LoadTopology, AHugeFileIsRefused) {
  const TemporaryFile file("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  std::filesystem::resize_file(file.path(), std::uintmax_t{1} << 40);  // of nothing
  const auto topology = load_topology(file.path());
  ASSERT_FALSE(topology);
  EXPECT_THAT(topology.error().message(), HasSubstr(file.path()));
}

TEST(LoadTopology, ThisMachineIsReadAndCaptured) {
  const auto live = load_topology();
  ASSERT_TRUE(live) << live.error().message();
  EXPECT_FALSE(live->nodes.empty());
  const auto captured = capture_topology();
  ASSERT_TRUE(captured) << captured.error().message();
  const TemporaryFile file(*captured);
  const auto again = load_topology(file.path());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->nodes.size(), live->nodes.size());
  EXPECT_EQ(again->gpus.size(), live->gpus.size());
}

TEST(LoadTopology, ACaptureNamesNoHost) {
  const auto captured = capture_topology();
  ASSERT_TRUE(captured) << captured.error().message();
  for (const char* secret : {"HostName", "ProcessName", "SerialNumber", "Address", "GUID", "UUID"})
    EXPECT_THAT(*captured, testing::Not(HasSubstr(fmt::format("name=\"{}", secret))));
}

}  // namespace
}  // namespace weft::facts
