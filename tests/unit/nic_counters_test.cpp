// What NICs have counted, out of the kernel's files as instances have them.
#include "topo/nic_counters.hpp"

#include <gtest/gtest.h>

#include "folder.hpp"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

/// A /sys with devices that a test makes up.
class NicCounterFiles : public testing::Test {
 protected:
  void put(const std::string& device, const std::string& name, const std::string& text) {
    const fs::path file(folder_.at("class/infiniband/" + device + "/ports/" + name));
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  /// As on a p5.48xlarge: Linux 6.8, drivers/infiniband/hw/efa/efa_verbs.c, efa_port_stats_names.
  /// Its folder `counters` is not there, as the driver has no MADs.
  void put_efa(const std::string& device) {
    const std::pair<const char*, const char*> files[] = {
        {"tx_bytes", "1000"},
        {"tx_pkts", "10"},
        {"rx_bytes", "2000"},
        {"rx_pkts", "20"},
        {"rx_drops", "0"},
        {"send_bytes", "30"},
        {"send_wrs", "3"},
        {"recv_bytes", "40"},
        {"recv_wrs", "4"},
        {"rdma_read_wrs", "5"},
        {"rdma_read_bytes", "500"},
        {"rdma_read_wr_err", "0"},
        {"rdma_read_resp_bytes", "60"},
        {"rdma_write_wrs", "7"},
        {"rdma_write_bytes", "700"},
        {"rdma_write_wr_err", "0"},
        {"rdma_write_recv_bytes", "800"},
        {"lifespan", "10"},
    };
    for (const auto& [name, value] : files)
      put(device, std::string("1/hw_counters/") + name, std::string(value) + "\n");
  }

  std::optional<NicCounters> read(const std::string& device) const {
    return read_nic_counters(folder_.at(""), device);
  }

 private:
  const weft::test::Folder folder_;
};

TEST_F(NicCounterFiles, OfEfaAreAllThere) {
  put_efa("rdmap79s0");
  const auto counters = read("rdmap79s0");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->nic, "rdmap79s0");
  EXPECT_EQ(counters->sent, 1000U);
  EXPECT_EQ(counters->received, 2000U);
  EXPECT_EQ(counters->written, 700U);
  EXPECT_EQ(counters->written_by_peers, 800U);
  EXPECT_EQ(counters->read, 500U);
  EXPECT_EQ(counters->read_by_peers, 60U);
  EXPECT_EQ(counters->messages_sent, 30U);
  EXPECT_EQ(counters->messages_received, 40U);
  EXPECT_EQ(counters->left_by_rdma(), 760U);
  EXPECT_EQ(counters->came_by_rdma(), 1300U);
}

TEST_F(NicCounterFiles, OfAnEfaWithoutWritesDontTellOfRdma) {
  // c5n.18xlarge with Linux 5.4: the names end with those of receives.
  for (const char* name : {"tx_bytes", "rx_bytes", "send_bytes", "recv_bytes"})
    put("rdmap0s6", std::string("1/hw_counters/") + name, "5\n");
  const auto counters = read("rdmap0s6");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->messages_sent, 5U);
  EXPECT_FALSE(counters->written);
  EXPECT_FALSE(counters->left_by_rdma());
}

TEST_F(NicCounterFiles, OfPortsAreInWordsOfFourBytes) {
  // mlx5: Documentation/ABI/stable/sysfs-class-infiniband; its hw_counters count requests.
  put("mlx5_0", "1/counters/port_xmit_data", "250\n");
  put("mlx5_0", "1/counters/port_rcv_data", "1000000000000\n");
  put("mlx5_0", "1/hw_counters/rx_write_requests", "17\n");
  const auto counters = read("mlx5_0");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->sent, 1000U);
  EXPECT_EQ(counters->received, 4000000000000U);
  EXPECT_FALSE(counters->written);
}

TEST_F(NicCounterFiles, OfSeveralPortsAreAddedWhereAllTell) {
  put("mlx4_0", "1/counters/port_xmit_data", "1\n");
  put("mlx4_0", "2/counters/port_xmit_data", "2\n");
  put("mlx4_0", "1/counters/port_rcv_data", "1\n");
  const auto counters = read("mlx4_0");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->sent, 12U);
  EXPECT_FALSE(counters->received);
}

TEST_F(NicCounterFiles, ThatHoldNoNumberTellNothing) {
  for (const char* text : {"", "\n", "N/A (no PMA)\n", "-1\n", "0x10\n", "12abc\n", "1.5\n",
                           "18446744073709551616\n"}) {
    put("rxe0", "1/hw_counters/tx_bytes", text);
    const auto counters = read("rxe0");
    ASSERT_TRUE(counters);
    EXPECT_FALSE(counters->sent) << text;
  }
}

TEST_F(NicCounterFiles, ThatHaveStoppedAtTheirEndTellNothing) {
  // Devices without extended counters: 32 bits, which stay at the greatest number.
  put("mthca0", "1/counters/port_xmit_data", "4294967295\n");
  put("mthca0", "1/counters/port_rcv_data", "4294967294\n");
  const auto counters = read("mthca0");
  ASSERT_TRUE(counters);
  EXPECT_FALSE(counters->sent);
  EXPECT_EQ(counters->received, std::uint64_t{4} * 4294967294U);
}

TEST_F(NicCounterFiles, ThatWouldOverflowTellNothing) {
  put("mlx5_0", "1/counters/port_xmit_data", "9223372036854775807\n");
  put("two", "1/hw_counters/tx_bytes", "18446744073709551614\n");
  put("two", "2/hw_counters/tx_bytes", "2\n");
  EXPECT_FALSE(read("mlx5_0")->sent);
  EXPECT_FALSE(read("two")->sent);
}

TEST_F(NicCounterFiles, ThatCantBeReadTellNothing) {
  put("rdmap0s6", "1/hw_counters/rx_bytes", "5\n");
  // A folder in a file's place can't be read by anybody.
  put("rdmap0s6", "1/hw_counters/tx_bytes/deeper", "5\n");
  const auto counters = read("rdmap0s6");
  ASSERT_TRUE(counters);
  EXPECT_FALSE(counters->sent);
  EXPECT_EQ(counters->received, 5U);
}

TEST_F(NicCounterFiles, AreOfRdmaDevicesAlone) {
  put_efa("rdmap79s0");
  for (const char* name : {"eth0", "lo", "", ".", "..", "../infiniband/rdmap79s0", "rdmap79s0/"})
    EXPECT_FALSE(read(name)) << name;
}

TEST(NicCounterGrowth, IsWhatWasAdded) {
  const NicCounters before{.nic = "a", .sent = 10, .written = 5};
  const NicCounters after{.nic = "a", .rails = {"efa:0"}, .sent = 30, .written = 5};
  const NicCounters grown = growth(before, after);
  EXPECT_EQ(grown.nic, "a");
  EXPECT_EQ(grown.rails, after.rails);
  EXPECT_EQ(grown.sent, 20U);
  EXPECT_EQ(grown.written, 0U);
}

TEST(NicCounterGrowth, IsNotKnownWhereACounterBeganAgainOrIsMissing) {
  const NicCounters before{.sent = 10, .received = 10};
  const NicCounters after{.sent = 9, .written = 5};
  const NicCounters grown = growth(before, after);
  EXPECT_FALSE(grown.sent);
  EXPECT_FALSE(grown.received);
  EXPECT_FALSE(grown.written);
}

}  // namespace
}  // namespace weft::topo
