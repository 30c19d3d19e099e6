// Over four NICs in two NUMA nodes of a machine like p4d.24xlarge: which of them are opened, and
// which carry what. WEFT_TOPO_XML says where they are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "carriers.hpp"
#include "files.hpp"
#include "forwarding.hpp"

namespace weft::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::size_t size = 8 << 20;
constexpr const char* gpu_of_node_0 = "0000:10:1c.0";
constexpr const char* gpu_of_node_1 = "0000:a0:1d.0";

Config config(unsigned nics = 4) {
  Config config = config_for("efa", nics);
  config.max_nics = nics;
  config.rails = 1;
  config.chunk_bytes = 64 << 10;
  return config;
}

TEST(Affinity, TheNicsOfTheGpusAreOpened) {
  Config one = config(1);
  one.gpus = {gpu_of_node_1};
  EXPECT_THAT(opened(one), ElementsAre("rdmap160s27"));
  one.gpus = {"00000000:20:1D.0", "90:1c.0"};
  EXPECT_THAT(opened(one), UnorderedElementsAre("rdmap32s27", "rdmap144s27")) << "one for each";
  one.gpus = {"0000:11:00.0"};
  const auto unknown = Engine::open(one);
  ASSERT_TRUE(fails_with(unknown, Code::not_found));
  EXPECT_THAT(unknown.error().to_string(), HasSubstr(gpu_of_node_0)) << "there are others";
}

TEST(Affinity, ThoseOfTheProcesssNodeAreOpenedFirst) {
  // This process runs on node 0, on whatever machine it is.
  EXPECT_THAT(opened(config(2)), UnorderedElementsAre("rdmap16s27", "rdmap32s27"));
}

TEST(Affinity, AGpusSegmentUsesItsOwnNicAndNoOther) {
  Couple pair = couple(config());
  const Memory own = Memory::own(size);
  EXPECT_THAT(moved(pair, own.near_gpu(gpu_of_node_0), own.near_gpu(gpu_of_node_1)),
              ElementsAre(Pair("rdmap16s27", 2 * size)));
  EXPECT_THAT(moved(pair, own.near_gpu(gpu_of_node_1), own.near_gpu(gpu_of_node_0)),
              ElementsAre(Pair("rdmap160s27", 2 * size)));
  // The far side's NICs don't change the near side's.
  EXPECT_THAT(moved(pair, own.near_gpu(gpu_of_node_1), own),
              ElementsAre(Pair("rdmap160s27", 2 * size)));
}

TEST(Affinity, BounceBuffersGoToTheNicsThatServeTheOtherSide) {
  Config bounced = config();
  bounced.transport = TransportKind::bounce;
  Couple pair = couple(bounced);
  const Memory own = Memory::own(size);
  for (const char* theirs : {gpu_of_node_0, gpu_of_node_1})
    EXPECT_THAT(moved(pair, own.near_gpu(gpu_of_node_0), own.near_gpu(theirs)),
                ElementsAre(Pair("rdmap16s27", 2 * size)));
}

/// Sends what is to be bounced to another of the peer's NICs than it should.
class Astray final : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  static inline std::atomic<bool> on{false};

  Result<providers::FabricAddress> insert(Bytes address) override {
    return ForwardingEndpoint::insert(address).map([this](providers::FabricAddress known) {
      known_.insert(known);
      return known;
    });
  }
  providers::Post send(providers::Posted& posted, const providers::Local& local,
                       providers::FabricAddress peer, providers::MessageClass type) override {
    const auto other = std::find_if(known_.begin(), known_.end(),
                                    [&](providers::FabricAddress each) { return each != peer; });
    const bool strays = on && type == providers::MessageClass::bounce && other != known_.end();
    return ForwardingEndpoint::send(posted, local, strays ? *other : peer, type);
  }

 private:
  std::set<providers::FabricAddress> known_;
};

TEST(Affinity, BounceBuffersOfANicThatDoesNotServeTheMemoryAreRefused) {
  Config hostile = config(1);
  hostile.transport = TransportKind::bounce;
  Engine a = must(open_wrapped<Astray>(hostile)), b = must(Engine::open(config()));
  auto [to_b, to_a] = acquaint(a, b);
  Couple pair{std::move(a), std::move(b), std::move(to_b), std::move(to_a)};
  Board board(pair, Memory::own(size), Memory::own(size).near_gpu(gpu_of_node_0));
  const weft::Pair all[] = {{0, 0, size}};
  // All of the peer's NICs have receives, as they have for a peer that used them rightly before.
  EXPECT_TRUE(comes_to_be([&] {
    moved(pair, Memory::own(size), Memory::own(size));
    const Info info = pair.b.info();
    return std::all_of(info.rails.begin(), info.rails.end(),
                       [](const RailInfo& rail) { return rail.bounce_buffer_bytes > 0; });
  }));
  Astray::on = true;
  EXPECT_TRUE(fails_with(must(pair.a.write(board.local, board.there, all)).wait(soon()),
                         Code::permission_denied));
  EXPECT_TRUE(fails_with(must(pair.a.read(board.local, board.there, all)).wait(soon()),
                         Code::permission_denied));
  board.expect_untouched();
  Astray::on = false;
  board.expect_moved(Direction::write, all);
}

TEST(Affinity, HostMemoryUsesTheNicsOfItsNode) {
  Couple pair = couple(config());
  Blob touched(size, std::byte{1});
  const Memory near = Memory::adopt(touched.data(), size);
  ASSERT_EQ(must(pair.a.add(near)).place().numa_node, 0);
  const auto bytes = moved(pair, near, Memory::own(size));
  EXPECT_THAT(names_of(bytes), UnorderedElementsAre("rdmap16s27", "rdmap32s27"));
}

TEST(Affinity, MemoryWhoseNodeIsUnknownIsSpread) {
  Couple pair = couple(config());
  EXPECT_EQ(must(pair.a.add(Memory::own(size))).place().numa_node, -1) << "it has no pages yet";
  const auto bytes = moved(pair, Memory::own(size), Memory::own(size));
  EXPECT_EQ(names_of(bytes).size(), 4U);
}

TEST(Affinity, RegisteredEverywhereAllNicsCarryIt) {
  Config everywhere = config();
  everywhere.register_everywhere = true;
  Couple pair = couple(everywhere);
  const Memory near = Memory::own(size).near_gpu(gpu_of_node_0);
  EXPECT_EQ(names_of(moved(pair, near, near)).size(), 4U);
}

TEST(Affinity, OneNicTalksToAllThatServeTheOtherSide) {
  Couple pair = couple(config(1), config(4));
  const auto bytes = moved(pair, Memory::own(size), Memory::own(size));
  EXPECT_EQ(bytes.size(), 1U);
}

/// Says in the kernel's place that a file lies on the drive of that name, at that controller.
void put_on_drive(const std::string& file, const std::string& name, const std::string& pci,
                  int node) {
  namespace fs = std::filesystem;
  struct stat at {};
  ASSERT_EQ(stat(file.c_str(), &at), 0);
  const fs::path sysfs = std::getenv("SYSFS_PATH"), controller = sysfs / "devices" / pci;
  fs::create_directories(controller / name);
  std::ofstream(controller / "numa_node") << node << '\n';
  fs::create_directories(sysfs / "dev/block");
  fs::create_symlink(
      controller / name,
      sysfs / "dev/block" / fmt::format("{}:{}", major(at.st_dev), minor(at.st_dev)));
}

TEST(Affinity, AFileUsesTheNicNearItsDriveAndNoOther) {
  const Folder folder;
  const std::string path = folder.write("pages", std::string(size, 'x'));
  put_on_drive(path, "nvme144n1", "0000:90:1e.0", 1);
  Couple pair = couple(config());
  const Segment file = must(pair.a.add(Memory::file(path, 0, size)));
  EXPECT_EQ(file.place().numa_node, 1);
  const auto drives = must(load_topology(std::getenv("WEFT_TOPO_XML"))).drives;
  EXPECT_EQ(drives.at(static_cast<std::size_t>(file.place().drive)).name, "nvme144n1");

  Segment memory = must(pair.b.add(Memory::own(size)));
  const Grant grant = must(memory.grant({}, Rights::read_write));
  const Remote there = must(pair.a.import(grant.blob()));
  const weft::Pair all[] = {{0, 0, size}};
  Transfer out = must(pair.a.write(file, there, all));
  must(out.wait(soon()));
  EXPECT_THAT(bytes_by_nic(pair.a, out), ElementsAre(Pair("rdmap144s27", size)));
  EXPECT_TRUE(same_bytes(bytes_of(memory), Blob(size, std::byte{'x'})));
  fill(bytes_of(memory), 2);
  Transfer back = must(pair.a.read(file, there, all));
  must(back.wait(soon()));
  EXPECT_THAT(bytes_by_nic(pair.a, back), ElementsAre(Pair("rdmap144s27", size)));
  EXPECT_TRUE(same_bytes(contents_of(path), bytes_of(memory)));
}

/// In the kernel's place, whose files the software device does not write.
void put_counter(const std::string& nic, const std::string& name, const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(std::getenv("SYSFS_PATH")) / "class/infiniband" / nic / "ports/1/hw_counters";
  fs::create_directories(folder);
  std::ofstream(folder / name) << text << '\n';
}

TEST(Affinity, EachNicTellsWhatItHasCountedOnce) {
  put_counter("rdmap16s27", "rdma_write_bytes", "17");
  put_counter("rdmap32s27", "tx_bytes", "18");
  Config two_rails = config(2);
  two_rails.rails = 2;
  const Engine engine = must(Engine::open(two_rails));
  std::map<std::string, NicCounters> nics;
  for (const NicCounters& each : engine.nic_counters())
    EXPECT_TRUE(nics.emplace(each.nic, each).second);
  ASSERT_EQ(nics.size(), 2U);
  EXPECT_EQ(nics["rdmap16s27"].written, 17U);
  EXPECT_FALSE(nics["rdmap16s27"].sent);
  EXPECT_EQ(nics["rdmap32s27"].sent, 18U);
  for (const auto& [name, each] : nics) EXPECT_EQ(each.rails.size(), 2U) << name;
}

TEST(Affinity, AnUnknownGpuIsAnError) {
  Engine engine = must(Engine::open(config(1)));
  EXPECT_TRUE(fails_with(engine.add(Memory::own(size).near_gpu("0000:ff:1f.7")), Code::not_found));
}

}  // namespace
}  // namespace weft::test
