// What a NIC has room for, as programs that use libibverbs meet it: pages, regions, address handles
// and queues. All processes are on one host, so they share its NICs.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "efa_fabric.hpp"
#include "process.hpp"

namespace weft::efa_sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t page = 4096;
constexpr int plain = IBV_ACCESS_LOCAL_WRITE;
constexpr int written_by_peers = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

struct Release {
  void operator()(ibv_context* each) const { ibv_close_device(each); }
  void operator()(ibv_pd* each) const { ibv_dealloc_pd(each); }
  void operator()(ibv_mr* each) const { ibv_dereg_mr(each); }
  void operator()(ibv_ah* each) const { ibv_destroy_ah(each); }
  void operator()(ibv_cq* each) const { ibv_destroy_cq(each); }
  void operator()(ibv_qp* each) const { ibv_destroy_qp(each); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, Release>;

/// None: see errno.
template <typename Object>
Owned<Object> owned(Object* object) {
  return Owned<Object>(object);
}

/// Addresses that nothing lies behind until it is used.
class Memory {
 public:
  explicit Memory(std::size_t pages) : bytes_(pages * page) {
    data_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
  }
  ~Memory() { munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }

 private:
  const std::size_t bytes_;
  std::byte* data_;
};

/// A NIC that this process has opened, and a protection domain there.
class OpenNic {
 public:
  explicit OpenNic(int index = 0) {
    ibv_device** const list = ibv_get_device_list(nullptr);
    context_ = owned(ibv_open_device(list[index]));
    ibv_free_device_list(list);
    domain_ = owned(ibv_alloc_pd(context()));
  }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }

  Owned<ibv_mr> add(const Memory& memory, std::size_t bytes, int rights = plain,
                    std::size_t offset = 0) const {
    return owned(ibv_reg_mr(domain(), memory.data() + offset, bytes, rights));
  }
  ibv_gid own_address() const {
    ibv_gid gid;
    ibv_query_gid(context(), 1, 0, &gid);
    return gid;
  }
  Owned<ibv_ah> reach(const ibv_gid& gid) const {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    attributes.grh.dgid = gid;
    return owned(ibv_create_ah(domain(), &attributes));
  }

 private:
  Owned<ibv_context> context_;
  Owned<ibv_pd> domain_;
};

/// A queue pair that may send, with queues of those depths.
class Queues {
 public:
  Queues(const OpenNic& nic, std::uint32_t send, std::uint32_t receive)
      : memory_(1),
        region_(nic.add(memory_, page)),
        self_(nic.reach(nic.own_address())),
        completions_(owned(ibv_create_cq(nic.context(), 1024, nullptr, nullptr, 0))) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.cap = {send, receive, 1, 1, 0};
    wanted.qp_type = IBV_QPT_UD;
    pair_ = owned(ibv_create_qp(nic.domain(), &wanted));
    error_ = errno;
    if (!pair_) return;
    ibv_qp_attr attributes{};
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      attributes.qp_state = state;
      ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_QKEY);
    }
  }
  /// 0, or an errno: there is no queue pair.
  int error() const { return pair_ ? 0 : error_; }

  /// A message to itself. Returns 0 or an errno.
  int send() {
    ibv_sge piece = this->piece();
    ibv_send_wr work{}, *bad = nullptr;
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    work.wr.ud = {self_.get(), pair_->qp_num, 0};
    return ibv_post_send(pair_.get(), &work, &bad);
  }
  int receive() {
    ibv_sge piece = this->piece();
    ibv_recv_wr work{}, *bad = nullptr;
    work.sg_list = &piece;
    work.num_sge = 1;
    return ibv_post_recv(pair_.get(), &work, &bad);
  }
  /// Takes that many completions; false if they don't come.
  bool take(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (count > 0 && std::chrono::steady_clock::now() < end) {
      ibv_wc entry{};
      if (ibv_poll_cq(completions_.get(), 1, &entry) != 1) {
        std::this_thread::sleep_for(100us);
        continue;
      }
      EXPECT_EQ(entry.status, IBV_WC_SUCCESS);
      --count;
    }
    return count == 0;
  }

 private:
  ibv_sge piece() const {
    return {reinterpret_cast<std::uint64_t>(memory_.data()), 8, region_->lkey};
  }
  Memory memory_;
  Owned<ibv_mr> region_;
  Owned<ibv_ah> self_;
  Owned<ibv_cq> completions_;
  Owned<ibv_qp> pair_;
  int error_ = 0;
};

class Limits : public testing::Test {
 protected:
  void SetUp() override { device_.set("clear"); }
  void TearDown() override { device_.set("clear"); }

  ibv_device_attr attributes() const {
    ibv_device_attr attributes;
    ibv_query_device(OpenNic().context(), &attributes);
    return attributes;
  }

  EfaControl device_ = EfaControl::of_environment();
};

TEST_F(Limits, AreToldAsOfARealDevice) {
  const ibv_device_attr real = attributes();
  EXPECT_EQ(real.max_mr_size, std::uint64_t{192} << 30);
  EXPECT_EQ(real.max_mr, 262'144);
  EXPECT_EQ(real.max_ah, 5120);
  device_.set("region_pages=100,regions=200,address_handles=300");
  const ibv_device_attr small = attributes();
  EXPECT_EQ(small.max_mr_size, 100 * page);
  EXPECT_EQ(small.max_mr, 200);
  EXPECT_EQ(small.max_ah, 300);
}

TEST_F(Limits, PagesThatPeersWriteAreOneMillionInARegion) {
  constexpr std::size_t limit = 1 << 20;
  const OpenNic nic;
  const Memory memory(limit + 2);
  EXPECT_TRUE(nic.add(memory, limit * page, written_by_peers));
  EXPECT_FALSE(nic.add(memory, limit * page + 1, written_by_peers));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_FALSE(nic.add(memory, limit * page, written_by_peers, 1)) << "it begins in a page more";
  EXPECT_TRUE(nic.add(memory, limit * page + 1, plain));
  EXPECT_TRUE(nic.add(memory, limit * page + 1, plain | IBV_ACCESS_REMOTE_READ));
  device_.set("write_pages=16");
  EXPECT_TRUE(nic.add(memory, 16 * page, written_by_peers));
  EXPECT_FALSE(nic.add(memory, 17 * page, written_by_peers));
}

TEST_F(Limits, PagesOfARegion) {
  device_.set("region_pages=16");
  const OpenNic nic;
  const Memory memory(17);
  EXPECT_TRUE(nic.add(memory, 16 * page));
  EXPECT_FALSE(nic.add(memory, 17 * page));
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(Limits, PagesOfANicAreThoseOf96GiB) {
  constexpr std::size_t quarter = std::size_t{6} << 20;
  const OpenNic nic, other(1);
  const Memory memory(quarter);
  std::vector<Owned<ibv_mr>> regions;
  for (int i = 0; i < 4; ++i) {
    regions.push_back(nic.add(memory, quarter * page));
    EXPECT_TRUE(regions.back());
  }
  EXPECT_FALSE(nic.add(memory, page));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(other.add(memory, quarter * page)) << "another NIC has room of its own";
  regions.pop_back();
  EXPECT_TRUE(nic.add(memory, quarter * page)) << "what was deregistered is given back";
}

TEST_F(Limits, RegionsOfANic) {
  device_.set("regions=3");
  const OpenNic nic;
  const Memory memory(1);
  std::vector<Owned<ibv_mr>> regions;
  for (int i = 0; i < 3; ++i) {
    regions.push_back(nic.add(memory, 1));
    EXPECT_TRUE(regions.back());
  }
  EXPECT_FALSE(nic.add(memory, 1));
  EXPECT_EQ(errno, ENOMEM);
  regions.pop_back();
  EXPECT_TRUE(nic.add(memory, 1));
}

TEST_F(Limits, AddressHandlesOfANic) {
  device_.set("address_handles=2");
  const OpenNic nic;
  const auto gid = [](std::uint8_t number) {
    ibv_gid gid{};
    gid.raw[15] = number;
    return gid;
  };
  const auto first = nic.reach(gid(1));
  auto second = nic.reach(gid(2));
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(nic.reach(gid(3)));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(nic.reach(gid(1))) << "there is a handle of that address";
  second.reset();
  EXPECT_TRUE(nic.reach(gid(3)));
}

/// Registers as many pages as it is told and says so. Then waits to be killed.
WEFT_ROLE(registrar) {
  const std::size_t pages = std::stoul(arguments.at(0));
  const OpenNic nic;
  const Memory memory(pages);
  const auto region = nic.add(memory, pages * page);
  const auto address = nic.reach(nic.own_address());
  parent.say(region && address ? "registered" : "refused");
  parent.hear(Deadline::in(60s));
  return 0;
}

TEST_F(Limits, ProcessesShareThemAndGiveThemBackWhenKilled) {
  device_.set("pages=16,regions=2,address_handles=1");
  const OpenNic nic;
  const Memory memory(16);
  test::Child child("registrar", {"12"});
  ASSERT_EQ(child.hear(), "registered");
  EXPECT_FALSE(nic.add(memory, 5 * page));
  EXPECT_FALSE(nic.reach(nic.own_address()));
  EXPECT_TRUE(nic.add(memory, 4 * page));
  child.kill();
  // The device is told of the end.
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (device_.registrations(child.pid()).regions > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(nic.add(memory, 16 * page));
  EXPECT_TRUE(nic.reach(nic.own_address()));
}

TEST_F(Limits, RegistrationsAreCounted) {
  const pid_t own = getpid();
  const Registrations all = device_.registrations(), before = device_.registrations(own);
  const OpenNic nic, other(1);
  const Memory memory(8);
  const auto first = nic.add(memory, 8 * page);
  {
    const auto second = other.add(memory, page + 1);
    const Registrations now = device_.registrations(own);
    EXPECT_EQ(now.regions, before.regions + 2);
    EXPECT_EQ(now.pages, before.pages + 10);
  }
  device_.set("register_fail=1");
  EXPECT_FALSE(nic.add(memory, page));
  const Registrations after = device_.registrations(own);
  EXPECT_EQ(after.made, before.made + 2) << "what was refused counts, or not what is gone";
  EXPECT_EQ(after.regions, before.regions + 1);
  EXPECT_EQ(after.pages, before.pages + 8);
  EXPECT_EQ(device_.registrations().made, all.made + 2);
  EXPECT_EQ(device_.registrations(1).made, 0u) << "those of another process";
}

std::chrono::nanoseconds time_to_register(const OpenNic& nic, const Memory& memory,
                                          std::size_t pages) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(nic.add(memory, pages * page));
  return std::chrono::steady_clock::now() - begin;
}

TEST_F(Limits, RegisteringTakesTime) {
  const OpenNic nic;
  const Memory memory(100);
  device_.set("register_cost=1000000");
  EXPECT_GE(time_to_register(nic, memory, 50), 50ms);
  device_.set("register_cost=0,register_cost_held=1000000");
  const auto held = nic.add(memory, 100 * page);
  EXPECT_GE(time_to_register(nic, memory, 1), 100ms);
}

TEST_F(Limits, ASendQueueIsAsDeepAsItWasAskedToBe) {
  const OpenNic nic;
  Queues queues(nic, 64, 64);
  ASSERT_EQ(queues.error(), 0);
  device_.set("stall=1");
  for (int i = 0; i < 64; ++i) ASSERT_EQ(queues.send(), 0) << i;
  EXPECT_EQ(queues.send(), ENOMEM);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(queues.receive(), 0) << i;
  device_.set("stall=0");
  ASSERT_TRUE(queues.take(2 * 64));
  device_.set("stall=1");
  for (int i = 0; i < 64; ++i) ASSERT_EQ(queues.send(), 0) << "there is room again, " << i;
  EXPECT_EQ(queues.send(), ENOMEM);
}

TEST_F(Limits, AReceiveQueueIsAsDeepAsItWasAskedToBe) {
  const OpenNic nic;
  Queues queues(nic, 64, 32);
  ASSERT_EQ(queues.error(), 0);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(queues.receive(), 0) << i;
  EXPECT_EQ(queues.receive(), ENOMEM);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(queues.send(), 0);
  ASSERT_TRUE(queues.take(2 * 10));
  for (int i = 0; i < 10; ++i) ASSERT_EQ(queues.receive(), 0) << i;
  EXPECT_EQ(queues.receive(), ENOMEM);
}

TEST_F(Limits, QueuesAreNoDeeperThanTheDevices) {
  device_.set("send_queue=128,receive_queue=256");
  const OpenNic nic;
  EXPECT_EQ(Queues(nic, 128, 256).error(), 0);
  EXPECT_EQ(Queues(nic, 129, 256).error(), EINVAL);
  EXPECT_EQ(Queues(nic, 128, 257).error(), EINVAL);
}

}  // namespace
}  // namespace weft::efa_sim
