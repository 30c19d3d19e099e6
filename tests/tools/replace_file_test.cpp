#include "common/replace_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = fs::temp_directory_path() / "weft-test-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~ReplaceFile() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(ReplaceFile, MakesAndReplaces) {
  ASSERT_TRUE(replace_file(path("a"), "first, and longer"));
  ASSERT_TRUE(replace_file(path("a"), "second"));
  EXPECT_EQ(read(path("a")), "second");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, KeepsALinkAndReplacesWhatItMeans) {
  std::ofstream(path("a")) << "old";
  fs::create_symlink("a", path("b"));
  ASSERT_TRUE(replace_file(path("b"), "new"));
  EXPECT_TRUE(fs::is_symlink(path("b")));
  EXPECT_EQ(read(path("a")), "new");
}

TEST_F(ReplaceFile, LeavesDevicesInTheirPlace) {
  ASSERT_TRUE(replace_file("/dev/null", "gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(ReplaceFile, SaysWhyNotAndLeavesNothing) {
  const auto nowhere = replace_file(path("none/a"), "text");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message().find("No such file"), std::string::npos);
  EXPECT_FALSE(replace_file(folder_, "text"));
  EXPECT_EQ(files(), 0U);
  const auto full = replace_file("/dev/full", "text");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message().find("No space"), std::string::npos);
}

}  // namespace
}  // namespace weft::tool
