// What control groups allow, read from made-up trees of the kernel's files.
#include "topo/control_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "services/room.hpp"
#include "topo/machine.hpp"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Optional;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr const char* limit_of_nothing = "9223372036854771712";  // version 1's

/// A folder like /, removed in the end.
class Tree {
 public:
  Tree() {
    std::string folder = (fs::temp_directory_path() / "weft-groups-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = folder;
  }
  ~Tree() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const fs::path& root() const { return root_; }

  void put(const fs::path& path, const std::string& text) const {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  void put(const fs::path& path, std::uint64_t number) const { put(path, std::to_string(number)); }

  /// As version 2 has it, mounted where it usually is.
  void second_version(const std::string& group, const std::string& mounted = "/") const {
    put("proc/self/cgroup", "0::" + group);
    put("proc/self/mountinfo",
        "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
        "30 23 0:26 " +
            mounted + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw");
  }

  /// As version 1 has it.
  void first_version(const std::string& group, const std::string& mounted = "/") const {
    put("proc/self/cgroup", "11:hugetlb:" + group + "\n5:memory:" + group +
                                "\n4:cpu,cpuacct:" + group + "\n1:name=systemd:/init");
    std::string mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n";
    for (const std::string each : {"hugetlb", "memory", "cpu,cpuacct", "name=systemd"})
      mounts += "33 31 0:30 " + mounted + " /sys/fs/cgroup/" + each +
                " rw,nosuid shared:10 master:3 - cgroup cgroup rw," + each + "\n";
    put("proc/self/mountinfo", mounts);
  }

  void use_memory(const fs::path& group, std::uint64_t limit, std::uint64_t used) const {
    put(group / "memory.max", limit);
    put(group / "memory.current", used);
  }

  void use_memory_1(const fs::path& group, const std::string& limit, std::uint64_t used) const {
    put(group / "memory.limit_in_bytes", limit);
    put(group / "memory.usage_in_bytes", used);
  }

 private:
  fs::path root_;
};

std::uint64_t memory_left(const Tree& tree) {
  const auto room = memory_room(tree.root());
  EXPECT_TRUE(room);
  return room ? room->left : 0;
}

TEST(ControlGroup, NothingIsLimitedWhereNothingIsTold) {
  const Tree tree;
  EXPECT_EQ(cpu_quota(tree.root()), std::nullopt);
  EXPECT_FALSE(memory_room(tree.root()));
  EXPECT_FALSE(huge_page_room(2 * mib, tree.root()));
  EXPECT_EQ(free_huge_pages(2 * mib, tree.root()), std::nullopt);
  EXPECT_EQ(available_memory(tree.root()), std::nullopt);
}

TEST(ControlGroup, OfTheSecondVersionTheTightestQuotaOnTheWayUpCounts) {
  const Tree tree;
  tree.second_version("/pods/pod/one");
  EXPECT_EQ(cpu_quota(tree.root()), std::nullopt) << "no file tells";
  tree.put("sys/fs/cgroup/pods/pod/one/cpu.max", "max 100000");
  EXPECT_EQ(cpu_quota(tree.root()), std::nullopt);
  tree.put("sys/fs/cgroup/pods/pod/cpu.max", "150000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(1.5));
  tree.put("sys/fs/cgroup/pods/pod/one/cpu.max", "800000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(1.5));
  tree.put("sys/fs/cgroup/pods/cpu.max", "10000 20000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(0.5));
  tree.put("sys/fs/cgroup/other/cpu.max", "1000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(0.5)) << "of a group that it is not in";
}

TEST(ControlGroup, OfTheFirstVersionTheTightestQuotaOnTheWayUpCounts) {
  const Tree tree;
  tree.first_version("/docker/one");
  const auto quota = [&](const fs::path& group, const std::string& time) {
    tree.put("sys/fs/cgroup/cpu,cpuacct" / group / "cpu.cfs_quota_us", time);
    tree.put("sys/fs/cgroup/cpu,cpuacct" / group / "cpu.cfs_period_us", "100000");
  };
  quota(".", "-1");
  quota("docker/one", "-1");
  EXPECT_EQ(cpu_quota(tree.root()), std::nullopt);
  quota("docker/one", "400000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(4));
  quota("docker", "250000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(2.5));
}

TEST(ControlGroup, TheRootOfANamespaceMayBeTheGroup) {
  const Tree tree;
  tree.second_version("/");
  tree.put("sys/fs/cgroup/cpu.max", "200000 100000");
  tree.use_memory("sys/fs/cgroup", 100 * mib, 30 * mib);
  EXPECT_THAT(cpu_quota(tree.root()), Optional(2));
  EXPECT_EQ(memory_left(tree), 70 * mib);
}

TEST(ControlGroup, AMountMayBeginBelowTheRoot) {
  const Tree tree;  // Docker without a namespace
  tree.first_version("/docker/one/inner", "/docker/one");
  tree.use_memory_1("sys/fs/cgroup/memory", std::to_string(100 * mib), 90 * mib);
  tree.use_memory_1("sys/fs/cgroup/memory/inner", limit_of_nothing, 80 * mib);
  EXPECT_EQ(memory_left(tree), 10 * mib);
  tree.use_memory_1("sys/fs/cgroup/memory/inner", std::to_string(85 * mib), 80 * mib);
  EXPECT_EQ(memory_left(tree), 5 * mib);
}

TEST(ControlGroup, AGroupOutsideOfTheMountIsLimitedByItsTop) {
  const Tree tree;
  tree.second_version("/../elsewhere");
  tree.put("sys/fs/cgroup/cpu.max", "300000 100000");
  tree.put("sys/fs/elsewhere/cpu.max", "100000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(3));
  tree.second_version("/pods/two", "/pods/one");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(3));
}

TEST(ControlGroup, AMountOfAnothersGroupDoesNotCountBesideTheOwn) {
  const Tree tree;
  tree.put("proc/self/cgroup", "0::/mine");
  tree.put("proc/self/mountinfo",
           "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
           "31 23 0:26 /others /mnt rw - cgroup2 cgroup2 rw");
  tree.put("mnt/cpu.max", "100000 100000");
  EXPECT_EQ(cpu_quota(tree.root()), std::nullopt);
  tree.put("sys/fs/cgroup/mine/cpu.max", "400000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(4));
}

TEST(ControlGroup, TheMountOfTheHostMayReachBeyondTheNamespace) {
  const Tree tree;
  tree.second_version("/", "/../..");
  tree.put("sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(3));
}

TEST(ControlGroup, MountsMayHaveBlanksInTheirNames) {
  const Tree tree;
  tree.put("proc/self/cgroup", "0::/");
  tree.put("proc/self/mountinfo", "30 23 0:26 / /all\\040my\\134groups rw - cgroup2 none rw");
  tree.put("all my\\groups/cpu.max", "300000 100000");
  EXPECT_THAT(cpu_quota(tree.root()), Optional(3));
}

TEST(ControlGroup, BothVersionsMayBeMixed) {
  const Tree tree;
  tree.put("proc/self/cgroup", "3:memory:/one\n0::/two");
  tree.put("proc/self/mountinfo",
           "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
           "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  tree.use_memory_1("sys/fs/cgroup/memory/one", std::to_string(10 * mib), 4 * mib);
  tree.put("sys/fs/cgroup/unified/two/cpu.max", "50000 100000");
  EXPECT_EQ(memory_left(tree), 6 * mib);
  EXPECT_THAT(cpu_quota(tree.root()), Optional(0.5));
}

TEST(ControlGroup, DamagedFilesLimitNothing) {
  const Tree tree;
  tree.second_version("/one");
  for (const char* text : {"", "max", "100000", "100000 0", "lots 100000", "-5 100000", "1e3 7x"}) {
    tree.put("sys/fs/cgroup/one/cpu.max", text);
    EXPECT_EQ(cpu_quota(tree.root()), std::nullopt) << text;
  }
  tree.put("sys/fs/cgroup/one/memory.max", "many");
  tree.put("sys/fs/cgroup/one/memory.current", 5);
  EXPECT_FALSE(memory_room(tree.root()));
  tree.put("proc/self/mountinfo", "30 23\n - \n 1 2 3 - cgroup2\n 1 2 3 . . - cgroup2\n1 2 3 / -");
  for (const char* groups : {"0\n::\n:::", "0::", "0::one", "0::/", "0::/one/../..", "0:://"}) {
    tree.put("proc/self/cgroup", groups);
    EXPECT_FALSE(memory_room(tree.root())) << groups;
  }
}

TEST(ControlGroup, CachedFilesCountAsLeft) {
  const Tree tree;
  tree.second_version("/one");
  tree.use_memory("sys/fs/cgroup/one", 100 * mib, 90 * mib);
  tree.put("sys/fs/cgroup/one/memory.stat",
           "anon 1048576\nfile 73400320\ninactive_file 41943040\nactive_file 10485760");
  EXPECT_EQ(memory_left(tree), 60 * mib);

  tree.first_version("/one");
  tree.use_memory_1("sys/fs/cgroup/memory/one", std::to_string(100 * mib), 90 * mib);
  tree.put("sys/fs/cgroup/memory/one/memory.stat",
           "inactive_file 1\ntotal_inactive_file 20971520\ntotal_active_file 0");
  EXPECT_EQ(memory_left(tree), 30 * mib);
}

TEST(ControlGroup, AGroupThatHasMoreThanItsLimitHasNothingLeft) {
  const Tree tree;
  tree.second_version("/one");
  tree.use_memory("sys/fs/cgroup/one", 100 * mib, 150 * mib);
  EXPECT_EQ(memory_left(tree), 0U);
  EXPECT_EQ(memory_room(tree.root())->group, tree.root() / "sys/fs/cgroup/one");
}

TEST(ControlGroup, HugePagesAreThoseOfTheSizeThatIsAskedFor) {
  const Tree tree;
  constexpr std::uint64_t page = 1024 * mib;
  tree.put("proc/meminfo", "MemAvailable:   2048 kB\nHugepagesize:       2048 kB");
  EXPECT_THAT(available_memory(tree.root()), Optional(2 * mib));
  const fs::path pool = "sys/kernel/mm/hugepages/hugepages-1048576kB";
  tree.put(pool / "free_hugepages", 5);
  EXPECT_THAT(free_huge_pages(page, tree.root()), Optional(5 * 1024 * mib));
  tree.put(pool / "resv_hugepages", 2);
  tree.put(pool / "nr_overcommit_hugepages", 4);
  tree.put(pool / "surplus_hugepages", 3);
  EXPECT_THAT(free_huge_pages(page, tree.root()), Optional(4 * 1024 * mib));

  tree.second_version("/one");
  tree.put("sys/fs/cgroup/one/hugetlb.2MB.max", 0);
  tree.put("sys/fs/cgroup/one/hugetlb.2MB.current", 0);
  EXPECT_FALSE(huge_page_room(page, tree.root()));
  tree.put("sys/fs/cgroup/one/hugetlb.1GB.max", 3 * 1024 * mib);
  tree.put("sys/fs/cgroup/one/hugetlb.1GB.current", 1024 * mib);
  EXPECT_EQ(huge_page_room(page, tree.root())->left, 2 * 1024 * mib);
  tree.put("sys/fs/cgroup/one/hugetlb.1GB.rsvd.max", 1024 * mib);
  tree.put("sys/fs/cgroup/one/hugetlb.1GB.rsvd.current", 0);
  EXPECT_EQ(huge_page_room(page, tree.root())->left, 1024 * mib);
}

TEST(Cores, AQuotaIsRoundedUp) {
  const auto usable = [](unsigned allowed, std::optional<double> quota) {
    return Cores{allowed, quota}.usable();
  };
  EXPECT_EQ(usable(96, std::nullopt), 96U);
  EXPECT_EQ(usable(96, 2), 2U);
  EXPECT_EQ(usable(96, 1.5), 2U);
  EXPECT_EQ(usable(96, 0.01), 1U);
  EXPECT_EQ(usable(96, 0), 1U);
  EXPECT_EQ(usable(4, 96), 4U);
  EXPECT_EQ(usable(4, 1e300), 4U);
}

std::string refusal(const Memory& memory, const Tree& tree) {
  const auto room = core::check_room(memory, tree.root());
  EXPECT_TRUE(room || room.error().code() == Code::out_of_memory);
  return room ? "" : room.error().message();
}

TEST(Room, MemoryThatNoGroupHasLeftIsRefusedWithTheNumbers) {
  const Tree tree;
  EXPECT_EQ(refusal(Memory::own(1000 * mib), tree), "");
  tree.second_version("/pods/one");
  tree.use_memory("sys/fs/cgroup/pods", 200 * mib, 150 * mib);
  tree.use_memory("sys/fs/cgroup/pods/one", 100 * mib, 30 * mib);
  for (const auto make : {&Memory::own, &Memory::shared}) {
    EXPECT_EQ(refusal(make(50 * mib), tree), "");
    const std::string message = refusal(make(50 * mib + 1), tree);
    for (const auto& words : {std::to_string(50 * mib + 1), std::to_string(50 * mib),
                              std::to_string(200 * mib), std::string("sys/fs/cgroup/pods ")})
      EXPECT_THAT(message, HasSubstr(words));
  }
  std::byte byte{};
  EXPECT_EQ(refusal(Memory::adopt(&byte, 500 * mib), tree), "") << "it is there already";
}

TEST(Room, HugePagesThatAreNotThereAreRefusedWithTheNumbers) {
  const Tree tree;
  tree.put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", 10);
  EXPECT_EQ(refusal(Memory::huge(20 * mib), tree), "");
  EXPECT_THAT(refusal(Memory::huge(20 * mib + 1), tree),
              testing::AllOf(HasSubstr(std::to_string(20 * mib)),
                             HasSubstr("hugepages-2048kB/nr_hugepages")));
  tree.first_version("/one");
  tree.put("sys/fs/cgroup/hugetlb/one/hugetlb.2MB.limit_in_bytes", 8 * mib);
  tree.put("sys/fs/cgroup/hugetlb/one/hugetlb.2MB.usage_in_bytes", 2 * mib);
  EXPECT_EQ(refusal(Memory::huge(6 * mib), tree), "");
  EXPECT_THAT(refusal(Memory::huge(6 * mib + 1), tree), HasSubstr("hugetlb/one"));
}

}  // namespace
}  // namespace weft::topo
