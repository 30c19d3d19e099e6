// The drives below block devices, in a sysfs that the test makes.
#include "topo/drive.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "folder.hpp"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

class Sysfs {
 public:
  /// "0000:10:00.0/nvme/nvme0", a controller on the PCI bus. A node of -1 is not known.
  fs::path add_controller(const std::string& path, int node) const {
    const fs::path controller = root() / "devices/pci0000:00" / path;
    fs::create_directories(controller);
    const fs::path pci = root() / "devices/pci0000:00" / *fs::path(path).begin();
    std::ofstream(pci / "numa_node") << node << "\n";
    return controller;
  }

  fs::path add_device(const fs::path& path, unsigned number) const {
    fs::create_directories(path / "slaves");
    fs::create_directories(root() / "dev/block");
    fs::create_symlink(path, root() / "dev/block" / ("259:" + std::to_string(number)));
    return path;
  }

  fs::path add_partition(const fs::path& drive, const std::string& name, unsigned number) const {
    fs::create_directories(drive / name);
    std::ofstream(drive / name / "partition") << "1\n";
    return add_device(drive / name, number);
  }

  /// "dm-0", made of others.
  fs::path add_made(const std::string& name, unsigned number,
                    std::initializer_list<fs::path> slaves) const {
    const fs::path made = add_device(root() / "devices/virtual/block" / name, number);
    for (const fs::path& each : slaves) fs::create_symlink(each, made / "slaves" / each.filename());
    return made;
  }

  DrivePlace place_of(unsigned number) const {
    return place_of_drive(makedev(259, number), root().string());
  }

  fs::path root() const { return folder_.at(""); }

 private:
  const test::Folder folder_;
};

class Drives : public testing::Test {
 protected:
  void expect(unsigned number, const std::string& name, int node) const {
    const DrivePlace place = sysfs.place_of(number);
    EXPECT_EQ(place.name, name);
    EXPECT_EQ(place.numa_node, node);
  }

  const Sysfs sysfs{};
  const fs::path near =
      sysfs.add_device(sysfs.add_controller("0000:10:00.0/nvme/nvme0", 0) / "nvme0n1", 0);
  const fs::path also_near =
      sysfs.add_device(sysfs.add_controller("0000:11:00.0/nvme/nvme1", 0) / "nvme1n1", 1);
  const fs::path far =
      sysfs.add_device(sysfs.add_controller("0000:90:00.0/nvme/nvme2", 1) / "nvme2n1", 2);
};

TEST_F(Drives, HaveTheNodeOfTheNearestDeviceThatTells) {
  expect(0, "nvme0n1", 0);
  expect(2, "nvme2n1", 1);
  sysfs.add_device(sysfs.add_controller("0000:20:00.0/ata1/host0/block", -1) / "sda", 3);
  expect(3, "sda", -1);
}

TEST_F(Drives, APartitionIsOfItsDrive) {
  sysfs.add_partition(far, "nvme2n1p1", 3);
  expect(3, "nvme2n1", 1);
}

TEST_F(Drives, WhatIsMadeOfOneDriveIsThere) {
  const fs::path crypt = sysfs.add_made("dm-0", 4, {sysfs.add_partition(far, "nvme2n1p1", 3)});
  sysfs.add_made("dm-1", 5, {crypt});
  expect(5, "nvme2n1", 1);
}

TEST_F(Drives, WhatIsMadeOfSeveralDrivesHasTheNodeThatTheyShare) {
  const fs::path array = sysfs.add_made("md0", 3, {near, also_near});
  expect(3, "", 0);
  sysfs.add_partition(array, "md0p1", 4);
  expect(4, "", 0);
  sysfs.add_made("md1", 5, {array, far});
  expect(5, "", -1);
}

TEST_F(Drives, ThoseThatAreOfNoControllerHaveTheNodeOfTheirControllers) {
  const fs::path subsystem = sysfs.root() / "devices/virtual/nvme-subsystem/nvme-subsys2";
  sysfs.add_device(subsystem / "nvme3n1", 3);
  fs::create_symlink(far.parent_path(), subsystem / "nvme2");
  expect(3, "nvme3n1", 1);
  fs::create_symlink(near.parent_path(), subsystem / "nvme0");
  expect(3, "nvme3n1", -1);
}

TEST_F(Drives, WhatIsPluggedInNowhereHasNoNode) {
  sysfs.add_made("loop0", 3, {});
  expect(3, "loop0", -1);
  expect(77, "", -1);
}

TEST(DriveNames, APathsNameIsItsDrives) {
  EXPECT_EQ(name_of_drive("nvme12c3n45"), "nvme12n45");
  for (const char* name :
       {"nvme0n1", "sda", "nvme", "nvme0", "nvme0c", "nvme0c1", "nvme0c1p1", "vdc", ""})
    EXPECT_EQ(name_of_drive(name), name);
}

TEST(DriveNames, ANameThatIsThereTwiceIsNoDrives) {
  Topology topology;
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme0n1"})
    topology.drives.emplace_back().name = name;
  EXPECT_EQ(find_drive(topology, "nvme1n1"), 1);
  EXPECT_EQ(find_drive(topology, "nvme0n1"), -1);
  EXPECT_EQ(find_drive(topology, "sda"), -1);
  EXPECT_EQ(find_drive(topology, ""), -1);
}

}  // namespace
}  // namespace weft::topo
