// Why there is no NIC: told from what a machine, or a container, shows of its hardware.
#include "providers/libfabric/system_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::providers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The folders of a machine that are looked at.
class Machine : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_function(const std::string& address, const std::string& vendor,
                    const std::string& device) {
    put("/sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    put("/sys/bus/pci/devices/" + address + "/device", device + "\n");
  }
  SystemProbe look() const {
    SystemProbe around = look_around(root_);
    around.memlock = UINT64_MAX;  // this machine's is not the subject
    return around;
  }

  const std::string root_ = testing::TempDir() + "weft-machine-" + std::to_string(getpid());
};

TEST_F(Machine, WithNothing) {
  const SystemProbe around = look();
  EXPECT_TRUE(around.efa_nics.empty());
  EXPECT_THAT(why_no_efa(around), HasSubstr("no EFA NIC"));
  EXPECT_THAT(why_no_verbs(around), HasSubstr("no RDMA device"));
  EXPECT_EQ(what_is_missed(around, {"tcp"}), "");
}

TEST_F(Machine, WithStreamsThatTheKernelHoldsBack) {
  EXPECT_EQ(what_holds_streams_back(root_), "");
  put("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
  EXPECT_EQ(what_holds_streams_back(root_), "");
  put("/proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
  EXPECT_THAT(what_holds_streams_back(root_),
              HasSubstr("congestion control bbr may hold a stream"));
}

TEST_F(Machine, WithEfaButNoDeviceInTheContainer) {
  put_function("0000:00:03.0", "0x1d0f", "0xec20");  // an ordinary interface of Amazon's
  put_function("0000:10:1b.0", "0x1d0f", "0xefa1");
  put_function("0000:20:1b.0", "0x1d0f", "0xefa2");
  put_function("0000:30:00.0", "0x10de", "0xefa1");  // another vendor's
  const SystemProbe around = look();
  EXPECT_THAT(around.efa_nics, testing::ElementsAre("0000:10:1b.0", "0000:20:1b.0"));
  EXPECT_THAT(why_no_efa(around), HasSubstr("0000:10:1b.0, 0000:20:1b.0"));
  EXPECT_THAT(why_no_efa(around), HasSubstr("--device /dev/infiniband"));
  EXPECT_THAT(what_is_missed(around, {"shm", "tcp"}), HasSubstr("/dev/infiniband"));
  EXPECT_EQ(what_is_missed(around, {"shm", "efa", "tcp"}), "");
}

TEST_F(Machine, WithADeviceThatMayNotBeOpened) {
  put_function("0000:10:1b.0", "0x1d0f", "0xefa1");
  // A folder can't be opened for writing by anybody.
  fs::create_directories(root_ + "/dev/infiniband/uverbs0");
  const SystemProbe around = look();
  EXPECT_EQ(around.verbs_nodes, 1U);
  EXPECT_FALSE(around.verbs_nodes_open);
  EXPECT_THAT(why_no_efa(around), HasSubstr("permissions"));
}

TEST_F(Machine, WithALibfabricThatLacksTheProvider) {
  put_function("0000:10:1b.0", "0x1d0f", "0xefa1");
  put("/dev/infiniband/uverbs0", "");
  const SystemProbe around = look();
  EXPECT_TRUE(around.verbs_nodes_open);
  EXPECT_THAT(why_no_efa(around), HasSubstr("built without its efa provider"));
}

TEST_F(Machine, WithALowMemlockLimit) {
  put_function("0000:10:1b.0", "0x1d0f", "0xefa1");
  put("/dev/infiniband/uverbs0", "");
  SystemProbe around = look();
  around.memlock = 8 << 20;
  EXPECT_THAT(why_no_efa(around), HasSubstr("8192 KiB"));
  EXPECT_THAT(why_no_efa(around), HasSubstr("ulimit -l"));
}

TEST_F(Machine, WithInfiniBand) {
  put("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  put("/dev/infiniband/rdma_cm", "");
  const SystemProbe around = look();
  EXPECT_EQ(around.rdma_devices, 1U);
  EXPECT_EQ(around.verbs_nodes, 0U);
  EXPECT_THAT(why_no_verbs(around), HasSubstr("uverbs"));
  EXPECT_THAT(what_is_missed(around, {"tcp"}), HasSubstr("RDMA devices are here"));
  EXPECT_EQ(what_is_missed(around, {"verbs"}), "");
  put("/dev/infiniband/uverbs0", "");
  EXPECT_THAT(why_no_verbs(look()), HasSubstr("no port is active"));
  fs::remove(root_ + "/dev/infiniband/rdma_cm");
  EXPECT_THAT(why_no_verbs(look()), HasSubstr("rdma_ucm"));
}

}  // namespace
}  // namespace weft::providers
