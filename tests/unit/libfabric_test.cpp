// Which libfabric a process takes: of those that are named, loaded, or in a folder, each a fake.
#include "providers/libfabric/libfabric.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <weft/engine.hpp>
#include <weft/process.hpp>

namespace weft::providers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* no_such_name = "libfabric-that-no-system-has.so.1";

class Libfabrics : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  /// A libfabric, `fake` being one of those that Meson built, as a file of a folder of this test.
  std::string put(const char* fake, const std::string& file) const {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    fs::copy_file(fs::path(WEFT_FAKES) / (std::string("libfake-") + fake + ".so"), path);
    return path;
  }
  std::string put_text(const std::string& file) const {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(4096, 'x');
    return path;
  }
  std::string folder(const std::string& name) const { return root_ / name; }
  /// Nothing but these folders, and what the process has loaded.
  LibfabricPlaces places(std::vector<std::string> folders) const {
    for (std::string& each : folders) each = folder(each);
    return {"", std::move(folders), "libfabric.so.1"};
  }

  const fs::path root_ =
      fs::path(testing::TempDir()) / ("weft-libfabrics-" + std::to_string(getpid()));
};

/// In a process of its own, since what was loaded stays. Prints what it failed of.
template <typename Look>
bool in_child(const Look& look) {
  const pid_t child = fork();
  if (child == 0) {
    look();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string problem_of(const LibfabricPlaces& places) {
  const auto found = find_libfabric(places);
  if (found) return "found " + found->file;
  EXPECT_EQ(found.error().code(), Code::unavailable);
  return found.error().message();
}

TEST_F(Libfabrics, ThatIsNamedComesBeforeAllOthers) {
  const std::string file = put("2.0", "mine/libmine.so"), loaded = put("1.17", "libfabric.so.1");
  put("1.17", "installed/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    ASSERT_NE(dlopen(loaded.c_str(), RTLD_NOW), nullptr);
    const auto found = find_libfabric({file, {folder("installed")}, no_such_name});
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->file, file);
    EXPECT_EQ(found->version_text(), "2.0");
    EXPECT_EQ(found->found, "WEFT_LIBFABRIC names it");
    EXPECT_EQ(found->warning, "");
    EXPECT_STREQ(found->strerror(1), "a fake's error");
  }));
}

TEST_F(Libfabrics, ThatIsNamedAndCanNotServeIsAnErrorThatNamesIt) {
  put("2.0", "installed/libfabric.so.1");
  const std::string text = put_text("text.so"), old = put("1.10", "old.so"),
                    lacking = put("lacking", "lacking.so");
  const auto problem = [&](const std::string& file) {
    return problem_of({file, {folder("installed")}, no_such_name});
  };
  EXPECT_TRUE(in_child([&] {
    EXPECT_THAT(problem(folder("none.so")), HasSubstr("WEFT_LIBFABRIC names a file that can't"));
    EXPECT_THAT(problem(folder("none.so")), HasSubstr(folder("none.so")));
    EXPECT_THAT(problem(text), HasSubstr(text + ": "));
    EXPECT_EQ(problem(old), old + " is libfabric 1.10, but Weft takes 1.17 or newer");
    EXPECT_EQ(problem(lacking), lacking + " is no libfabric: it lacks fi_fabric");
  }));
}

TEST_F(Libfabrics, ThatTheProcessHasLoadedComesBeforeTheInstalled) {
  const std::string file = put("1.17", "own/libfabric.so.1");
  put("2.0", "installed/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    ASSERT_NE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
    const auto found = find_libfabric(places({"installed"}));
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->file, file);
    EXPECT_EQ(found->found, "this process had loaded it");
    EXPECT_EQ(found->warning, "");
  }));
}

TEST_F(Libfabrics, ThatAPackageBroughtIsUsedWithAWarning) {
  const std::string file = put("2.0", "package.libs/libfabric-0a1b2c3d.so.1.28.0");
  put("2.0", "installed/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    ASSERT_NE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
    const auto found = find_libfabric(places({"installed"}));
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->file, file);
    EXPECT_EQ(found->found, "this process had loaded it");
    EXPECT_THAT(found->warning, HasSubstr("it is of another package"));
    EXPECT_THAT(found->warning, HasSubstr("WEFT_LIBFABRIC may name another"));
  }));
}

TEST_F(Libfabrics, ThatTheProcessHasLoadedAndIsTooOldIsNotPassedOver) {
  const std::string file = put("1.10", "own/libfabric.so.1");
  put("2.0", "installed/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    ASSERT_NE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
    EXPECT_THAT(problem_of(places({"installed"})), HasSubstr(file + " is libfabric 1.10"));
  }));
}

TEST_F(Libfabrics, OfTheFirstFolderThatHasOneComesBeforeTheSystems) {
  const std::string file = put("2.0", "second/libfabric.so.1");
  put("1.17", "third/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    const auto found = find_libfabric(places({"first", "second", "third"}));
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->file, file);
    EXPECT_EQ(found->found, folder("second") + " has it");
  }));
}

TEST_F(Libfabrics, OfAFolderThatCanNotBeLoadedIsNotPassedOver) {
  const std::string file = put_text("first/libfabric.so.1");
  put("2.0", "second/libfabric.so.1");
  EXPECT_TRUE(in_child([&] {
    EXPECT_THAT(problem_of(places({"first", "second"})), HasSubstr("can't be loaded: " + file));
  }));
}

TEST_F(Libfabrics, AreNowhere) {
  EXPECT_TRUE(in_child([&] {
    const std::string problem = problem_of({"", {folder("none")}, no_such_name});
    EXPECT_THAT(problem, HasSubstr("there is no libfabric: not in this process, not in " +
                                   folder("none") + ", and the system says: " + no_such_name));
  }));
}

TEST_F(Libfabrics, ThatWereNotFoundAreLookedForAgain) {
  const std::string file = put("2.0", "libmine.so");
  EXPECT_TRUE(in_child([&] {
    EXPECT_EQ(process_info().libfabric.file, "");
    EXPECT_EQ(process_info().libfabric.problem, "") << "nobody has looked";
    setenv("WEFT_LIBFABRIC", folder("none.so").c_str(), 1);
    EXPECT_FALSE(load_libfabric());
    EXPECT_EQ(loaded_libfabric(), nullptr);
    EXPECT_THAT(process_info().libfabric.problem, HasSubstr(folder("none.so")));
    setenv("WEFT_LIBFABRIC", file.c_str(), 1);
    ASSERT_TRUE(load_libfabric());
    const LibfabricInfo info = process_info().libfabric;
    EXPECT_EQ(info.file, file);
    EXPECT_EQ(info.version, "2.0");
    EXPECT_EQ(info.found, "WEFT_LIBFABRIC names it");
    EXPECT_EQ(info.problem, "");
    setenv("WEFT_LIBFABRIC", folder("none.so").c_str(), 1);
    EXPECT_EQ(&libfabric(), *load_libfabric()) << "it stays";
  }));
}

TEST_F(Libfabrics, ThatIsNamedMustBeThereWhereOneIsWanted) {
  EXPECT_TRUE(in_child([&] {
    setenv("WEFT_LIBFABRIC", folder("none.so").c_str(), 1);
    Config config;
    const auto all = discover(config);
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message(), HasSubstr(folder("none.so")));
    config.providers = {"shm"};
    EXPECT_TRUE(discover(config)) << "shm takes none";
  }));
}

}  // namespace
}  // namespace weft::providers
