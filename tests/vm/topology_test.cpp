// In a virtual machine of two NUMA nodes (two_nodes.py), of which this machine's own topology is
// read: what engines over verbs make of it. NICs bear the names of their places: "rxe1_gpu" is the
// one on the switch of node 1's GPU, "rxe1_alone" the node's other one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "carriers.hpp"

namespace weft::test {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::size_t size = 4 << 20;

std::string on_switch(int node) {
  return fmt::format("rxe{}_gpu", node);
}

std::string alone(int node) {
  return fmt::format("rxe{}_alone", node);
}

std::string gpu_of(int node) {
  const Topology here = must(load_topology());
  for (const Gpu& each : here.gpus)
    if (each.numa_node == node) return each.pci;
  throw std::runtime_error(fmt::format("node {} has no GPU", node));
}

/// Its index.
int drive_of(int node) {
  const auto drives = must(load_topology()).drives;
  for (std::size_t at = 0; at < drives.size(); ++at)
    if (drives[at].numa_node == node) return static_cast<int>(at);
  throw std::runtime_error(fmt::format("node {} has no drive", node));
}

Config config(unsigned nics) {
  Config config = config_for("verbs", nics);
  config.max_nics = nics;
  config.rails = 1;
  config.chunk_bytes = 64 << 10;
  return config;
}

Config config_for_gpu(int node) {
  Config config = test::config(1);
  config.gpus = {gpu_of(node)};
  return config;
}

std::string word_in(const std::filesystem::path& path, const std::string& key = {}) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (key.empty() || (word == key && file >> word)) return word;
  return {};
}

/// As the kernel writes it: "2-3".
std::string cores_of(int node) {
  return word_in(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
}

/// Keeps the calling thread, and those that it starts, on a node's cores.
class OnNode {
 public:
  explicit OnNode(int node) {
    sched_getaffinity(0, sizeof before_, &before_);
    unsigned first = 0, last = 0;
    char dash = 0;
    std::istringstream(cores_of(node)) >> first >> dash >> last;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (unsigned core = first; core <= last; ++core) CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0) throw std::runtime_error("no such cores");
  }
  ~OnNode() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

std::size_t page_size() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Memory with pages of the node that the caller runs on. malloc may hand out some that it has had
/// for long.
class Touched {
 public:
  Touched() {
    void* fresh = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) throw std::runtime_error("no memory");
    pages_ = static_cast<std::byte*>(fresh);
    fill({pages_, size}, 1);
  }
  ~Touched() { munmap(pages_, size); }
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;

  std::byte* data() const { return pages_; }

 private:
  std::byte* pages_ = nullptr;
};

/// The nodes that memory lies on, as the kernel has it.
std::set<int> nodes_under(std::span<std::byte> memory) {
  std::set<int> nodes;
  for (std::size_t at = 0; at < memory.size(); at += page_size()) {
    int node = -1;
    if (syscall(SYS_get_mempolicy, &node, nullptr, 0, &memory[at], MPOL_F_NODE | MPOL_F_ADDR) != 0)
      throw std::runtime_error("get_mempolicy failed");
    nodes.insert(node);
  }
  return nodes;
}

/// Waits until automatic NUMA balancing hides a page, or some seconds: later kernels do not let it
/// be seen. It comes by as a thread uses its core.
void await_balancing(void* page) {
  const Deadline deadline = Deadline::in(5s);
  for (int node = 0; node >= 0 && !deadline.passed();)
    syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &node, 0);
}

/// The cores that each of this process's threads may run on.
std::map<std::string, std::string> threads() {
  std::map<std::string, std::string> found;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
    found[each.path().filename()] = word_in(each.path() / "status", "Cpus_allowed_list:");
  return found;
}

/// How many threads of two engines keep to a node's cores. They do once they have carried
/// something.
std::ptrdiff_t threads_on(int node, const Config& config) {
  const auto before = threads();
  Couple pair = couple(config);
  moved(pair, Memory::own(size), Memory::own(size));
  EXPECT_EQ(pair.a.info().rails.front().numa_node, node);
  const auto now = threads();
  return std::count_if(now.begin(), now.end(), [&](const auto& each) {
    return !before.contains(each.first) && each.second == cores_of(node);
  });
}

class TwoNodes : public testing::TestWithParam<int> {
 protected:
  const int node_ = GetParam(), other_ = 1 - node_;
};

TEST_P(TwoNodes, TheNicOfAGpusSwitchIsOpened) {
  EXPECT_THAT(opened(config_for_gpu(node_)), ElementsAre(on_switch(node_)));
}

TEST_P(TwoNodes, ThoseOfTheProcesssNodeAreOpenedFirst) {
  const OnNode here(node_);
  EXPECT_THAT(opened(config(2)), UnorderedElementsAre(on_switch(node_), alone(node_)));
}

TEST_P(TwoNodes, AGpusSegmentUsesTheNicOfItsSwitchAndNoOther) {
  Couple pair = couple(config(4));
  const Memory own = Memory::own(size).near_gpu(gpu_of(node_));
  EXPECT_THAT(moved(pair, own, own), ElementsAre(Pair(on_switch(node_), 2 * size)));
}

TEST_P(TwoNodes, EnginesForOneGpuMeetOverItsNic) {
  Couple pair = couple(config_for_gpu(node_));
  const Memory own = Memory::own(size).near_gpu(gpu_of(node_));
  EXPECT_THAT(moved(pair, own, own), ElementsAre(Pair(on_switch(node_), 2 * size)));
}

TEST_P(TwoNodes, APlaceIsToldWhileTheKernelWatchesWhoUsesIt) {
  const OnNode here(node_);
  const Touched pages;
  Engine engine = must(Engine::open(config(1)));
  await_balancing(pages.data());
  const Memory one = Memory::adopt(pages.data(), page_size());
  EXPECT_EQ(must(engine.add(one)).place().numa_node, node_);
}

TEST_P(TwoNodes, HostMemoryUsesTheNicsOfItsNode) {
  const OnNode here(node_);
  const Touched mine, yours;
  Couple pair = couple(config(4));
  const Memory from = Memory::adopt(mine.data(), size), to = Memory::adopt(yours.data(), size);
  ASSERT_EQ(must(pair.a.add(from)).place().numa_node, node_);
  EXPECT_THAT(names_of(moved(pair, from, to)),
              UnorderedElementsAre(on_switch(node_), alone(node_)));
}

TEST_P(TwoNodes, GpusOfTwoNodesMeetOverTheirOwnNics) {
  Couple pair = couple(config(4));
  const Memory own = Memory::own(size);
  EXPECT_THAT(moved(pair, own.near_gpu(gpu_of(node_)), own.near_gpu(gpu_of(other_))),
              ElementsAre(Pair(on_switch(node_), 2 * size)));
}

TEST_P(TwoNodes, ADriveUsesTheNicOfItsSwitchAndNoOther) {
  const int drive = drive_of(node_);
  const Drive known = must(load_topology()).drives[static_cast<std::size_t>(drive)];
  Couple pair = couple(config(4));
  const Segment file = must(pair.a.add(Memory::file("/dev/" + known.name, 0, size)));
  EXPECT_EQ(file.place().drive, drive);
  EXPECT_EQ(file.place().numa_node, node_);
  Segment memory = must(pair.b.add(Memory::own(size)));
  fill(bytes_of(memory), 1);
  const Grant grant = must(memory.grant({}, Rights::write));
  const weft::Pair all[] = {{0, 0, size}};
  Transfer zeros = must(pair.a.write(file, must(pair.a.import(grant.blob())), all));
  must(zeros.wait(soon()));
  EXPECT_THAT(bytes_by_nic(pair.a, zeros), ElementsAre(Pair(on_switch(node_), size)));
  EXPECT_TRUE(same_bytes(bytes_of(memory), Blob(size)));
}

TEST_P(TwoNodes, ProgressThreadsKeepToTheCoresOfTheirNic) {
  Config config = config_for_gpu(node_);
  EXPECT_EQ(threads_on(node_, config), 2) << "each engine has one rail";
  config.place_threads = false;
  EXPECT_EQ(threads_on(node_, config), 0);
}

TEST_P(TwoNodes, PagesNearAGpuComeFromItsNode) {
  Engine engine = must(Engine::open(config_for_gpu(node_)));
  const OnNode elsewhere(other_);
  const Segment near = must(engine.add(Memory::own(size).near_gpu(gpu_of(node_))));
  EXPECT_EQ(near.place().numa_node, node_);
  fill(bytes_of(near), 1);
  EXPECT_THAT(nodes_under(bytes_of(near)), ElementsAre(node_));

  const Segment far = must(engine.add(Memory::own(size)));
  fill(bytes_of(far), 1);
  EXPECT_THAT(nodes_under(bytes_of(far)), ElementsAre(other_)) << "the process runs there";
}

INSTANTIATE_TEST_SUITE_P(Topology, TwoNodes, testing::Values(0, 1));

}  // namespace
}  // namespace weft::test
