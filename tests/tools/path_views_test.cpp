// Paths as text, as JSON and as a graph, and memory as the command line says it.
#include "look/path_views.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/memory_place.hpp"
#include "look/graphviz.hpp"

namespace weft::tool {
namespace {

/// From a GPU over a NIC that can't reach it, to host memory elsewhere.
Path staged(const std::string& nic = "mlx5_0") {
  const auto stop = [](Stop::Kind kind, PathSide side) { return Stop{.kind = kind, .side = side}; };
  Path path;
  path.provider = "verbs";
  path.transport = TransportKind::bounce;
  path.rails = {"verbs:0"};
  Stop at = stop(Stop::Kind::device, PathSide::local);
  at.device = 3;
  const auto step = [&](Stop to, Mover by, PathSide side) {
    path.hops.push_back({at, to, by, side});
    at = to;
  };
  step(stop(Stop::Kind::bounce_buffer, PathSide::local), Mover::copy_engine, PathSide::local);
  Stop own_nic = stop(Stop::Kind::nic, PathSide::local);
  own_nic.name = nic;
  step(own_nic, Mover::nic, PathSide::local);
  step(stop(Stop::Kind::wire, PathSide::between), Mover::nic, PathSide::local);
  step(stop(Stop::Kind::nic, PathSide::remote), Mover::nic, PathSide::remote);
  step(stop(Stop::Kind::bounce_buffer, PathSide::remote), Mover::nic, PathSide::remote);
  Stop memory = stop(Stop::Kind::host, PathSide::remote);
  memory.numa_node = 1;
  step(memory, Mover::cpu, PathSide::remote);
  path.copies = 2;
  path.copies_local = path.copies_remote = path.cpu_copies = 1;
  path.gbps = 100;
  path.limit = "NIC " + nic;
  path.not_used = {"shm: another host", "GPUDirect: no dmabuf from the driver"};
  return path;
}

TEST(PathText, HasEachHopAndWhatTheyComeTo) {
  EXPECT_EQ(path_text(staged()),
            "write over verbs through bounce buffers: 2 copies of each byte, 1 here and 1 at the "
            "peer, 1 by a CPU\n"
            "\n"
            "  memory of GPU 3\n"
            "    ║ the GPU's copy engine copies\n"
            "  bounce buffer\n"
            "    │ by the NIC\n"
            "  NIC mlx5_0\n"
            "    │ by the NIC\n"
            "  wire\n"
            "    │ by the NIC\n"
            "  the peer's NIC\n"
            "    │ by the NIC\n"
            "  the peer's bounce buffer\n"
            "    ║ the CPU copies\n"
            "  the peer's host memory on node 1\n"
            "\n"
            "  rails        verbs:0\n"
            "  hosts        not proven to be on one\n"
            "  limit        100 Gb/s: NIC mlx5_0\n"
            "  not used     shm: another host\n"
            "               GPUDirect: no dmabuf from the driver\n");
}

TEST(PathText, SaysWhatIsRefusedAndWhatIsBounced) {
  Path path = staged();
  path.refused = "the transfer's policy allows no copies";
  path.bounced_below = 9000;
  path.bounces_local = 1;
  const std::string text = path_text(path);
  EXPECT_NE(text.find("  refused      the transfer's policy allows no copies\n"), text.npos);
  EXPECT_NE(text.find("below 9000 bytes, 1 more by a CPU: 1 here and 0 at the peer"), text.npos);
}

TEST(PathJson, HasAllOfIt) {
  const nlohmann::ordered_json json = to_json(staged());
  EXPECT_EQ(json["transport"], "bounce");
  EXPECT_EQ(json["copies"], 2);
  EXPECT_EQ(json["hops"].size(), 6U);
  EXPECT_EQ(json["hops"][0]["from"]["kind"], "device");
  EXPECT_EQ(json["hops"][0]["from"]["gpu"], 3);
  EXPECT_EQ(json["hops"][0]["by"], "copy_engine");
  EXPECT_EQ(json["hops"][0]["copies"], true);
  EXPECT_EQ(json["hops"][5]["to"]["numa"], 1);
  EXPECT_EQ(json["not_used"].size(), 2U);
  EXPECT_TRUE(json["refused"].is_null());
  Path unknown = staged();
  unknown.gbps = 0;
  EXPECT_TRUE(to_json(unknown)["gbps"].is_null());
}

TEST(PathDot, IsAGraphThatGraphvizDraws) {
  const auto picture = render(to_dot(staged()), "svg");
  if (!picture && picture.error().code() == Code::not_found) GTEST_SKIP() << "no Graphviz";
  ASSERT_TRUE(picture) << picture.error().to_string();
  for (const char* word : {"memory of GPU 3", "mlx5_0", "the CPU copies", "this engine", "wire"})
    EXPECT_NE(picture->find(word), picture->npos) << word;
}

TEST(PathViews, NamesCantPlayTricks) {
  const Path evil = staged("\x1b[31m</TD>\"]; \\N");
  for (const std::string& text : {path_text(evil), to_dot(evil)})
    EXPECT_EQ(text.find('\x1b'), text.npos);
  const auto picture = render(to_dot(evil), "svg");
  if (!picture && picture.error().code() == Code::not_found) GTEST_SKIP() << "no Graphviz";
  EXPECT_TRUE(picture) << picture.error().to_string();
}

TEST(MemoryPlaces, AreHostNodesAndGpus) {
  EXPECT_EQ(parse_place("host")->kind, MemoryKind::host);
  EXPECT_EQ(parse_place("node:1")->numa_node, 1);
  EXPECT_EQ(parse_place("node:1")->kind, MemoryKind::host);
  EXPECT_EQ(parse_place("gpu:3")->device, 3);
  EXPECT_EQ(parse_place("gpu:3")->kind, MemoryKind::device);
  for (const char* wrong : {"", "gpu", "gpu:", "gpu:x", "gpu:-1", "gpu:1x", "node:99999999999"})
    EXPECT_FALSE(parse_place(wrong)) << wrong;
}

}  // namespace
}  // namespace weft::tool
