#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "folder.hpp"
#include "nixl/links.hpp"

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* plugin = "/opt/weft/libplugin_WEFT.so";

/// A wheel's folder with two plug-ins.
class NixlLinks : public testing::Test {
 protected:
  NixlLinks() {
    write("libplugin_UCX.so", "the wheel's UCX");
    write("libplugin_POSIX.so", "the wheel's POSIX");
  }

  std::string at(const std::string& name) const { return folder_.at(name); }
  std::string path() const { return fs::path(at("x")).parent_path(); }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  void link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(symlink(target.c_str(), at(name).c_str()), 0);
  }
  void rename(const std::string& from, const std::string& to) const {
    fs::rename(at(from), at(to));
  }

  /// What each file holds, and where each link leads.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& each : fs::directory_iterator(path())) {
      std::ifstream in(each.path());
      all[each.path().filename()] = each.is_symlink()
                                        ? "-> " + fs::read_symlink(each.path()).string()
                                        : std::string(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }
  NixlChange changed_by_link(const std::string& name) const {
    const auto changed = link_plugin(path(), name, plugin);
    EXPECT_TRUE(changed) << (changed ? "" : changed.error().message());
    return changed ? changed->change : NixlChange::nothing;
  }
  NixlChange changed_by_unlink(const std::string& name) const {
    const auto changed = unlink_plugin(path(), name);
    EXPECT_TRUE(changed) << (changed ? "" : changed.error().message());
    return changed ? changed->change : NixlChange::linked;
  }
  NixlLink only_link() const {
    const auto links = find_links(path());
    EXPECT_TRUE(links && links->size() == 1);
    return links && links->size() == 1 ? links->front() : NixlLink{};
  }
  void expect_refused(const std::string& name, Code code) const {
    const auto before = contents();
    const auto changed = link_plugin(path(), name, plugin);
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code(), code);
    EXPECT_EQ(contents(), before);
  }

  test::Folder folder_;
};

TEST_F(NixlLinks, OwnName) {
  const auto before = contents();
  EXPECT_TRUE(find_links(path())->empty());
  EXPECT_EQ(changed_by_link("WEFT"), NixlChange::linked);
  EXPECT_EQ(changed_by_link("WEFT"), NixlChange::linked_already);
  EXPECT_EQ(only_link().target, plugin);
  EXPECT_EQ(only_link().state, NixlLinkState::dangling);
  EXPECT_EQ(changed_by_unlink("WEFT"), NixlChange::removed);
  EXPECT_EQ(changed_by_unlink("WEFT"), NixlChange::nothing);
  EXPECT_EQ(contents(), before);
}

TEST_F(NixlLinks, NameOfAnother) {
  const auto before = contents();
  EXPECT_EQ(changed_by_link("UCX"), NixlChange::took_name);
  EXPECT_EQ(contents().at("libplugin_UCX.so.weft-kept"), "the wheel's UCX");
  EXPECT_EQ(changed_by_link("UCX"), NixlChange::linked_already);
  EXPECT_EQ(only_link().kept, at("libplugin_UCX.so.weft-kept"));
  EXPECT_EQ(changed_by_unlink("UCX"), NixlChange::given_back);
  EXPECT_EQ(contents(), before);
}

TEST_F(NixlLinks, LinkThatLedElsewhere) {
  link("/elsewhere/libplugin_WEFT.so", "libplugin_WEFT.so");
  const auto changed = link_plugin(path(), "WEFT", plugin);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->change, NixlChange::led_elsewhere);
  EXPECT_EQ(changed->before, "/elsewhere/libplugin_WEFT.so");
  EXPECT_EQ(changed->link.target, plugin);
  EXPECT_EQ(contents().at("libplugin_WEFT.so"), std::string("-> ") + plugin);
}

TEST_F(NixlLinks, WhatIsNotOursStays) {
  write("libplugin_WEFT.so", "somebody's");
  expect_refused("WEFT", Code::unavailable);
  EXPECT_EQ(changed_by_unlink("WEFT"), NixlChange::nothing);
  fs::remove(at("libplugin_WEFT.so"));
  link("libplugin_UCX.so", "libplugin_WEFT.so");
  expect_refused("WEFT", Code::unavailable);
  EXPECT_EQ(changed_by_unlink("WEFT"), NixlChange::nothing);
  EXPECT_TRUE(find_links(path())->empty());
}

TEST_F(NixlLinks, NameThatNobodyHas) {
  expect_refused("LIBFABRIC", Code::not_found);
  fs::create_directory(at("libplugin_DIR.so"));
  const auto changed = link_plugin(path(), "DIR", plugin);
  EXPECT_FALSE(changed);
  EXPECT_TRUE(fs::is_directory(at("libplugin_DIR.so")));
}

// After each call that an installation makes.
TEST_F(NixlLinks, InterruptedInstallations) {
  const auto before = contents();
  for (const bool put_aside : {false, true})
    for (const bool complete : {false, true}) {
      link(plugin, "libplugin_UCX.so.weft-new");
      if (put_aside) rename("libplugin_UCX.so", "libplugin_UCX.so.weft-kept");
      EXPECT_EQ(only_link().state, NixlLinkState::interrupted);
      if (complete) {
        EXPECT_EQ(changed_by_link("UCX"),
                  put_aside ? NixlChange::completed : NixlChange::took_name);
        EXPECT_EQ(contents().at("libplugin_UCX.so"), std::string("-> ") + plugin);
        EXPECT_EQ(contents().at("libplugin_UCX.so.weft-kept"), "the wheel's UCX");
      }
      EXPECT_EQ(changed_by_unlink("UCX"),
                put_aside || complete ? NixlChange::given_back : NixlChange::removed);
      EXPECT_EQ(contents(), before);
    }
}

TEST_F(NixlLinks, WheelThatWasInstalledAnew) {
  write("libplugin_UCX.so.weft-kept", "an older UCX");
  EXPECT_EQ(only_link().state, NixlLinkState::renewed);
  expect_refused("UCX", Code::unavailable);
  EXPECT_FALSE(unlink_plugin(path(), "UCX"));
  EXPECT_EQ(contents().at("libplugin_UCX.so"), "the wheel's UCX");
  EXPECT_EQ(contents().at("libplugin_UCX.so.weft-kept"), "an older UCX");
}

TEST_F(NixlLinks, NoFolder) {
  for (const auto& error :
       {find_links(at("none")).error(), link_plugin(at("none"), "WEFT", plugin).error(),
        unlink_plugin(at("none"), "WEFT").error()})
    EXPECT_NE(error.message().find("No such file"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace weft::tool
