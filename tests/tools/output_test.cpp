#include "common/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "namespaces.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

class OutputTo : public testing::Test {
 protected:
  OutputTo() {
    std::string name = fs::temp_directory_path() / "weft-test-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~OutputTo() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static struct stat status_of(const std::string& file) {
    struct stat status {};
    EXPECT_EQ(stat(file.c_str(), &status), 0);
    return status;
  }
  /// What is named is another name of a device: a mount point, that nothing can take the place of.
  void with_a_device(const char* device, const std::function<void(const std::string&)>& work) {
    const std::string name = path("device");
    std::ofstream(name).flush();
    const int user = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    const pid_t child = fork();  // This process keeps its namespaces.
    if (child == 0)
      _exit(weft::test::run_apart(user, [&] {
        if (mount(device, name.c_str(), nullptr, MS_BIND, nullptr) != 0)
          return weft::test::refused_apart;
        work(name);
        return HasFailure() || !fs::is_character_file(name) ? 1 : 0;
      }));
    int ended = 0;
    ASSERT_EQ(waitpid(child, &ended, 0), child);
    const int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
    if (status == weft::test::refused_apart) GTEST_SKIP() << "no namespace of mounts to be had";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(files(), 1U);
  }

  fs::path folder_;
};

TEST_F(OutputTo, AFileMakesAndReplacesIt) {
  ASSERT_TRUE(write_output(path("a"), "first, and longer"));
  ASSERT_TRUE(write_output(path("a"), "second"));
  EXPECT_EQ(read(path("a")), "second");
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputTo, AFileLeavesItAsItWasUntilAllIsThere) {
  std::ofstream(path("a")) << "old";
  {
    auto output = Output::open(path("a"));
    ASSERT_TRUE(output);
    ASSERT_TRUE(output->write("new"));
    EXPECT_EQ(files(), 2U);
  }
  ASSERT_TRUE(check_output(path("a")));
  EXPECT_EQ(read(path("a")), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputTo, ALinkKeepsItAndReplacesWhatItMeans) {
  std::ofstream(path("a")) << "old";
  fs::create_symlink("a", path("b"));
  fs::create_symlink("none yet", path("c"));
  for (const char* link : {"b", "c"}) {
    ASSERT_TRUE(write_output(path(link), "new"));
    EXPECT_TRUE(fs::is_symlink(path(link)));
    EXPECT_EQ(read(path(link)), "new");
  }
  EXPECT_EQ(read(path("a")), "new");
}

TEST_F(OutputTo, AFileKeepsItsModeAndOwner) {
  std::ofstream(path("a")) << "old";
  ASSERT_EQ(chmod(path("a").c_str(), 0646), 0);
  const bool given_away = geteuid() != 0 || chown(path("a").c_str(), 12, 34) == 0;
  ASSERT_TRUE(given_away);
  const struct stat before = status_of(path("a"));
  ASSERT_TRUE(write_output(path("a"), "new"));
  const struct stat after = status_of(path("a"));
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(read(path("a")), "new");
}

TEST_F(OutputTo, ANewFileObeysTheUmask) {
  const mode_t before = umask(026);
  const auto written = write_output(path("a"), "new");
  umask(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(status_of(path("a")).st_mode & 07777, 0640U);
}

TEST_F(OutputTo, APipeWritesIntoIt) {
  ASSERT_EQ(mkfifo(path("a").c_str(), 0600), 0);
  ASSERT_TRUE(check_output(path("a"))) << "although nobody reads yet";
  std::string heard;
  std::thread reader([&] { heard = read(path("a")); });
  EXPECT_TRUE(write_output(path("a"), "through"));
  reader.join();
  EXPECT_EQ(heard, "through");
  EXPECT_TRUE(fs::is_fifo(path("a")));
}

TEST_F(OutputTo, AnOwnDescriptorGoesOnBehindWhatIsThere) {
  const Descriptor file(open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  ASSERT_EQ(write(file.get(), "log\n", 4), 4);
  const std::string name = "/dev/fd/" + std::to_string(file.get());
  ASSERT_TRUE(check_output(name));
  fs::create_symlink(name, path("link"));
  for (const std::string& each : {name, path("link")}) ASSERT_TRUE(write_output(each, "more\n"));
  EXPECT_EQ(read(path("log")), "log\nmore\nmore\n");
  EXPECT_EQ(status_of(path("log")).st_nlink, 1U);
}

TEST_F(OutputTo, ADeviceStaysInItsPlace) {
  with_a_device("/dev/null", [](const std::string& name) {
    EXPECT_TRUE(check_output(name));
    EXPECT_TRUE(write_output(name, "gone"));
  });
}

TEST_F(OutputTo, ADeviceThatIsFullIsFoundOutBeforehand) {
  with_a_device("/dev/full", [](const std::string& name) {
    for (const auto& full : {check_output(name), write_output(name, "text")}) {
      ASSERT_FALSE(full);
      EXPECT_NE(full.error().message().find("No space"), std::string::npos);
    }
  });
}

TEST_F(OutputTo, NowhereSaysWhyNotAndLeavesNothing) {
  const auto nowhere = write_output(path("none/a"), "text");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message().find("No such file"), std::string::npos);
  EXPECT_FALSE(write_output(folder_, "text"));
  EXPECT_FALSE(check_output(folder_));
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace weft::tool
