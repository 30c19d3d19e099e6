// Which libnixl has loaded the plug-in.
#include "nixl/libnixl.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "folder.hpp"
#include "nixl/self_test.hpp"

namespace weft::nixl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// A library that lies where a wheel has its own, loaded.
class Library {
 public:
  Library(const std::string& package, const std::vector<std::string>& infos) {
    const fs::path libraries = folder_.at("." + package + ".mesonpy.libs");
    fs::create_directory(libraries);
    for (const std::string& info : infos) fs::create_directory(folder_.at(info));
    fs::copy_file(WEFT_FAKE_LIBNIXL, libraries / "libnixl.so");
    library_ = dlopen((libraries / "libnixl.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~Library() { dlclose(library_); }
  LibNixl found() const { return libnixl_at(dlsym(library_, "an_address")); }

 private:
  weft::test::Folder folder_;
  void* library_;
};

TEST(LibNixl, IsKnownByItsWheel) {
  for (const char* version : {"1.3.2", "1.4.1", "1.5.1"}) {
    const Library library("nixl_cu12", {std::string("nixl_cu12-") + version + ".dist-info",
                                        "nixl-1.0.dist-info", "nixl_cu13-9.9.9.dist-info"});
    EXPECT_EQ(library.found().version, version);
    EXPECT_THAT(library.found().path, HasSubstr(".nixl_cu12.mesonpy.libs/libnixl.so"));
    EXPECT_TRUE(check(library.found(), "WEFT"));
  }
}

TEST(LibNixl, OfAVersionThatNobodyCheckedIsRefused) {
  const Library library("nixl_cu13", {"nixl_cu13-9.9.9.dist-info"});
  const auto checked = check(library.found(), "WEFT");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Code::protocol_mismatch);
  EXPECT_THAT(checked.error().message(), HasSubstr("is 9.9.9;"));
  EXPECT_THAT(checked.error().message(), HasSubstr("1.3.2, "));
}

/// A later release of a line that was checked, whose Python does as the test says.
class Patch {
 public:
  explicit Patch(const std::string& does) {
    fs::create_directories(folder_.at("nixl_cu12"));
    std::ofstream(folder_.at("nixl_cu12/__init__.py"));
    std::ofstream(folder_.at("nixl_cu12/_api.py")) << does << '\n';
  }
  Result<void> tried(Nanoseconds patience = std::chrono::seconds(60)) const {
    return run_self_test(WEFT_PYTHON,
                         {folder_.at(".nixl_cu12.mesonpy.libs/libnixl.so"), "nixl_cu12", "1.5.9"},
                         "WEFT", patience);
  }

 private:
  weft::test::Folder folder_;
};

/// Two agents of one Python, that move bytes between each other: `wrong` of them not.
std::string stand_in(int wrong) {
  return "wrong = " + std::to_string(wrong) + R"python(
import ctypes
agents = {}
def nixl_agent_config(backends):
    return None
class nixl_agent:
    def __init__(self, name, config):
        self.name, self.told = name, {}
        agents[name] = self
    def __getattr__(self, name):
        return lambda *arguments, **more: None
    def get_agent_metadata(self):
        return self.name
    def get_xfer_descs(self, regions, kind):
        return regions[0]
    def initialize_xfer(self, operation, one, other, name, note, backends):
        return (one, other) if operation == "WRITE" else (other, one), note, name
    def transfer(self, handle):
        ((source, length, _), (target, _, _)), note, name = handle
        ctypes.memmove(target, source, length - wrong)
        self.send_notif(name, note)
        return "DONE"
    def send_notif(self, name, note):
        agents[name].told.setdefault(self.name, []).append(note)
    def get_new_notifs(self):
        told, self.told = self.told, {}
        return told
)python";
}

TEST(SelfTest, TakesALibraryThatDoesWhatItIsAsked) {
  const auto tried = Patch(stand_in(0)).tried();
  EXPECT_TRUE(tried) << tried.error().to_string();
}

TEST(SelfTest, RefusesOneThatDoesNot) {
  const auto why = [](const Result<void>& tried) {
    return tried ? "it passed" : tried.error().message();
  };
  EXPECT_THAT(why(Patch(stand_in(1)).tried()), HasSubstr("failed: ValueError: the bytes"));
  EXPECT_THAT(why(Patch("import os; os.kill(os.getpid(), 11)").tried()),
              AllOf(HasSubstr("is 1.5.9, "), HasSubstr("crashed"), HasSubstr("use NIXL 1.5.1")));
  EXPECT_THAT(why(Patch("import time; time.sleep(60)").tried(std::chrono::seconds(1))),
              HasSubstr("took more than 1 s"));
  EXPECT_THAT(why(Patch("import no_such_module").tried()), HasSubstr("no_such_module"));
}

/// Of a program that has no Python, nothing is run.
TEST(SelfTest, NeedsAPythonProgram) {
  const Library library("nixl_cu12", {"nixl_cu12-1.5.9.dist-info"});
  const auto checked = check(library.found(), "WEFT");
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message(), HasSubstr("needs a server that is a Python program"));
}

TEST(LibNixl, ThatIsNoWheelsIsRefused) {
  const Library nobodys("nixl_cu12", {});
  EXPECT_FALSE(check(nobodys.found(), "WEFT"));
  EXPECT_FALSE(check(libnixl_at(reinterpret_cast<const void*>(&check)), "WEFT"));
  EXPECT_FALSE(check(libnixl_at(nullptr), "WEFT"));
}

}  // namespace
}  // namespace weft::nixl
