// Which libnixl has loaded the plug-in.
#include "nixl/libnixl.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "folder.hpp"

namespace weft::nixl {
namespace {

namespace fs = std::filesystem;
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
    EXPECT_TRUE(check(library.found()));
  }
}

TEST(LibNixl, OfAVersionThatNobodyCheckedIsRefused) {
  const Library library("nixl_cu13", {"nixl_cu13-9.9.9.dist-info"});
  const auto checked = check(library.found());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), Code::protocol_mismatch);
  EXPECT_THAT(checked.error().message(), HasSubstr("is 9.9.9;"));
  EXPECT_THAT(checked.error().message(), HasSubstr("1.3.2, "));
}

TEST(LibNixl, ThatIsNoWheelsIsRefused) {
  const Library nobodys("nixl_cu12", {});
  EXPECT_FALSE(check(nobodys.found()));
  EXPECT_FALSE(check(libnixl_at(reinterpret_cast<const void*>(&check))));
  EXPECT_FALSE(check(libnixl_at(nullptr)));
}

}  // namespace
}  // namespace weft::nixl
