// In real control groups, where this machine lets the test make some.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engines.hpp"
#include "topo/machine.hpp"

namespace weft::test {
namespace {

namespace fs = std::filesystem;

/// Whether the kernel took it.
bool put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

const fs::path groups = "/sys/fs/cgroup";

bool is_second_version() {
  return fs::exists(groups / "cgroup.controllers");
}

/// This process is in a group of its own while it lives.
class OwnGroup {
 public:
  explicit OwnGroup(const std::string& controller) {
    const fs::path top = is_second_version() ? groups : groups / controller;
    before_ = top / group_before(controller);
    folder_ = top / ("weft-test-" + std::to_string(getpid()));
    if (is_second_version()) put(top / "cgroup.subtree_control", "+" + controller);
    std::error_code failed;
    made_ = fs::create_directory(folder_, failed);
  }

  ~OwnGroup() {
    if (!made_) return;
    EXPECT_TRUE(put(before_ / "cgroup.procs", std::to_string(getpid())));
    EXPECT_EQ(rmdir(folder_.c_str()), 0);
  }
  OwnGroup(const OwnGroup&) = delete;
  OwnGroup& operator=(const OwnGroup&) = delete;

  bool set(const std::string& file, const std::string& text) const {
    return made_ && put(folder_ / file, text);
  }
  bool enter() const { return set("cgroup.procs", std::to_string(getpid())); }
  const fs::path& folder() const { return folder_; }

 private:
  /// Its path below the top, which may be empty.
  static fs::path group_before(const std::string& controller) {
    std::ifstream file("/proc/self/cgroup");
    std::string line;
    const std::string mark = is_second_version() ? "0::" : ":" + controller + ":";
    while (std::getline(file, line))
      if (const std::size_t at = line.find(mark); at != line.npos)
        return fs::path(line.substr(at + mark.size())).relative_path();
    return {};
  }

  fs::path before_, folder_;
  bool made_ = false;
};

TEST(ControlGroups, MemoryBeyondTheLimitIsRefused) {
  const OwnGroup group("memory");
  const std::string limit = std::to_string(512 << 20);
  if (!group.set(is_second_version() ? "memory.max" : "memory.limit_in_bytes", limit) ||
      !group.enter())
    GTEST_SKIP() << "no control group can be made here";
  Engine engine = must(Engine::open(config_for("tcp")));
  for (const auto make : {&Memory::own, &Memory::shared}) {
    const auto refused = engine.add(make(std::size_t{1} << 30));
    ASSERT_TRUE(fails_with(refused, Code::out_of_memory));
    for (const std::string& told : {group.folder().string(), limit})
      EXPECT_NE(refused.error().message().find(told), std::string::npos) << told;
    EXPECT_TRUE(succeeds(engine.add(make(1 << 20))));
  }
}

TEST(ControlGroups, RailsAndThreadsFollowTheQuota) {
  const OwnGroup group("cpu");
  const bool limited = is_second_version() ? group.set("cpu.max", "50000 100000")
                                           : group.set("cpu.cfs_period_us", "100000") &&
                                                 group.set("cpu.cfs_quota_us", "50000");
  if (!limited || !group.enter()) GTEST_SKIP() << "no control group can be made here";
  EXPECT_EQ(topo::cores().quota, 0.5);
  EXPECT_EQ(topo::cores().usable(), 1U);
  const Engine engine = must(Engine::open(config_for("tcp", 0)));
  EXPECT_EQ(engine.info().rails.size(), 1U);
}

}  // namespace
}  // namespace weft::test
