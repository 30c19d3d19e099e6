// NICs that libfabric says to reach device memory: how they are asked for, and what is registered
// with them (hmem_fabric.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "hmem_fabric.hpp"
#include "providers/libfabric/spec.hpp"

namespace weft::providers {
namespace {

using test::Asked;
using test::hmem_fabric;
using testing::HasSubstr;

constexpr Way ways[] = {{"net"}, {"tcp"}};

void any_address(fi_info& hints) {
  hints.addr_format = FI_FORMAT_UNSPEC;
}

const Spec spec = {
    .name = "hmem",
    .ways = ways,
    .device_memory = true,
    .hints = any_address,
    .quirks = [](const fi_info&, Capability&) {},
    .score = "it is a test's",
};

class HmemNics : public testing::Test {
 protected:
  void SetUp() override { hmem_fabric() = {}; }

  std::unique_ptr<Endpoint> open(bool device_memory) {
    constexpr std::array<unsigned, 2> all = {0, 1};
    std::vector<Seen> seen;
    look_at(spec, all, device_memory, seen);
    if (seen.empty() || !seen.front().nic) throw std::runtime_error("there are no sockets");
    auto endpoint = seen.front().nic->open();
    if (!endpoint) throw std::runtime_error(endpoint.error().to_string());
    hmem_fabric().asked.clear();
    return std::move(*endpoint);
  }
  Extent of_gpu(int ordinal) {
    return {memory_.data(), memory_.size(), Hmem::cuda, ordinal, nullptr};
  }
  std::array<std::byte, 8192> memory_{};
};

std::vector<FoundNic> found_by(std::span<const std::uint32_t> formats) {
  Spec by_formats = spec;
  by_formats.address_formats = formats;
  constexpr std::array<unsigned, 1> first = {0};
  std::vector<Seen> seen;
  look_at(by_formats, first, false, seen);
  std::vector<FoundNic> found;
  for (const Seen& each : seen)
    if (each.nic) found.push_back(each.found_nic);
  return found;
}

bool is_ipv6(const FoundNic& nic) {
  return nic.ip.find(':') != std::string::npos;
}

TEST_F(HmemNics, AreReachedByTheFirstKindOfAddressThatTheyHave) {
  constexpr std::uint32_t both[] = {FI_SOCKADDR_IN, FI_SOCKADDR_IN6}, v4[] = {FI_SOCKADDR_IN},
                          v6[] = {FI_SOCKADDR_IN6};
  const auto old = found_by(v4), fresh = found_by(v6), all = found_by(both);
  const auto has = [](const std::vector<FoundNic>& nics, const std::string& domain) {
    return std::any_of(nics.begin(), nics.end(),
                       [&](const FoundNic& each) { return each.domain == domain; });
  };
  ASSERT_FALSE(old.empty());
  for (const FoundNic& each : old) EXPECT_FALSE(is_ipv6(each)) << each.ip;
  for (const FoundNic& each : fresh) {
    EXPECT_TRUE(is_ipv6(each)) << each.ip;
    EXPECT_FALSE(each.ip.starts_with("fe80:")) << each.ip;
    EXPECT_TRUE(has(all, each.domain)) << each.domain;
  }
  for (const FoundNic& each : all) EXPECT_EQ(is_ipv6(each), !has(old, each.domain)) << each.domain;
}

TEST_F(HmemNics, AreAskedForFirstWhereTheyAreWanted) {
  const auto endpoint = open(true);
  EXPECT_NE(hmem_fabric().hinted.front() & FI_HMEM, 0U);
  EXPECT_NE(hmem_fabric().modes.front() & FI_MR_HMEM, 0);
  EXPECT_TRUE(endpoint->capability().device_memory);
  EXPECT_EQ(endpoint->capability().device_memory_problem, "");
}

TEST_F(HmemNics, AreNotAskedForWhereTheyAreNot) {
  const auto endpoint = open(false);
  for (const std::uint64_t capabilities : hmem_fabric().hinted)
    EXPECT_EQ(capabilities & FI_HMEM, 0U) << "it may start a GPU's driver";
  EXPECT_FALSE(endpoint->capability().device_memory);
  EXPECT_FALSE(endpoint->capability().dmabuf);
  EXPECT_THAT(endpoint->capability().device_memory_problem, HasSubstr("no GPU's driver"));
}

TEST_F(HmemNics, ThatThereAreNoneOfAreOpenedForHostMemory) {
  hmem_fabric().offers = false;
  const auto endpoint = open(true);
  EXPECT_FALSE(endpoint->capability().device_memory);
  EXPECT_THAT(endpoint->capability().device_memory_problem,
              HasSubstr("offers no access to device memory by it (FI_HMEM)"));
}

TEST_F(HmemNics, AreToldWhoseMemoryTheyGet) {
  const auto endpoint = open(true);
  const auto gpus = endpoint->register_memory(of_gpu(3).part(100, 50), Access::remote_write);
  ASSERT_TRUE(gpus) << gpus.error().to_string();
  const auto hosts = endpoint->register_memory({memory_.data(), 10}, Access::local);
  ASSERT_TRUE(hosts) << hosts.error().to_string();
  const auto& asked = hmem_fabric().asked;
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].iface, FI_HMEM_CUDA);
  EXPECT_EQ(asked[0].device, 3U);
  EXPECT_EQ(asked[0].address, memory_.data() + 100);
  EXPECT_EQ(asked[0].length, 50U);
  EXPECT_EQ(asked[0].access, FI_REMOTE_WRITE);
  EXPECT_EQ(asked[0].flags, 0U);
  EXPECT_EQ(asked[1].iface, FI_HMEM_SYSTEM);
  EXPECT_EQ(asked[1].device, 0U);
}

TEST_F(HmemNics, AreToldSoAgainWhenTheyAreOpenedAgain) {
  const auto endpoint = open(true);
  const auto gpus = endpoint->register_memory(of_gpu(1), Access::remote_read);
  ASSERT_TRUE(gpus);
  hmem_fabric().asked.clear();
  endpoint->suspend();
  ASSERT_TRUE(endpoint->reopen());
  endpoint->resume();
  ASSERT_EQ(hmem_fabric().asked.size(), 1U);
  EXPECT_EQ(hmem_fabric().asked[0].iface, FI_HMEM_CUDA);
  EXPECT_EQ(hmem_fabric().asked[0].device, 1U);
}

/// A device that libfabric asks about memory only where its context is current.
class CountingContext final : public DeviceContext {
 public:
  std::unique_ptr<CurrentDevice> make_current() const override {
    return std::make_unique<Current>();
  }
  static bool current() { return depth > 0; }

 private:
  struct Current final : CurrentDevice {
    Current() { ++depth; }
    ~Current() override { --depth; }
  };
  static inline thread_local int depth = 0;
};

TEST_F(HmemNics, AskTheDeviceInItsContextWhicheverThreadRegisters) {
  const auto endpoint = open(true);
  const CountingContext context;
  hmem_fabric().context_is_current = CountingContext::current;
  Extent memory = of_gpu(1);
  memory.context = &context;
  const auto whole = endpoint->register_memory(memory.by_pointer(), Access::local);
  const auto part = endpoint->register_memory(memory.part(100, 50), Access::remote_read);
  ASSERT_TRUE(whole && part);
  std::thread([&] {
    endpoint->suspend();
    EXPECT_TRUE(endpoint->reopen());
    endpoint->resume();
  }).join();
  ASSERT_EQ(hmem_fabric().asked.size(), 4U);
  for (const Asked& each : hmem_fabric().asked) EXPECT_TRUE(each.in_context);
  EXPECT_FALSE(CountingContext::current());
}

TEST_F(HmemNics, AreKeptWhereTheyLoseDeviceMemoryAsTheyAreOpenedAgain) {
  const auto endpoint = open(true);
  const auto gpus = endpoint->register_memory(of_gpu(1), Access::remote_read);
  const auto hosts = endpoint->register_memory({memory_.data(), 10}, Access::remote_read);
  ASSERT_TRUE(gpus && hosts);
  EXPECT_EQ((*gpus)->lost(), nullptr);
  const auto reopen = [&] {
    endpoint->suspend();
    EXPECT_TRUE(endpoint->reopen());
    endpoint->resume();
  };
  hmem_fabric().refusal = FI_EOPNOTSUPP;
  reopen();
  ASSERT_NE((*gpus)->lost(), nullptr);
  EXPECT_EQ((*gpus)->lost()->fabric_code(), FI_EOPNOTSUPP);
  EXPECT_THAT((*gpus)->lost()->message(), HasSubstr("can't register 8192 bytes"));
  EXPECT_EQ((*hosts)->lost(), nullptr);
  hmem_fabric().refusal = 0;
  hmem_fabric().asked.clear();
  reopen();
  EXPECT_NE((*gpus)->lost(), nullptr) << "whoever has it was told";
  ASSERT_EQ(hmem_fabric().asked.size(), 1U);
  EXPECT_EQ(hmem_fabric().asked[0].iface, FI_HMEM_SYSTEM);
  EXPECT_TRUE((*gpus)->close());
  EXPECT_TRUE((*hosts)->close());
}

TEST_F(HmemNics, ThatRefuseDeviceMemorySayWhy) {
  const auto endpoint = open(true);
  hmem_fabric().refusal = FI_EOPNOTSUPP;
  const auto refused = endpoint->register_memory(of_gpu(0), Access::local);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().operation(), "fi_mr_regattr");
  EXPECT_EQ(refused.error().fabric_code(), FI_EOPNOTSUPP);
  EXPECT_THAT(refused.error().message(), HasSubstr("can't register 8192 bytes"));
  EXPECT_TRUE(endpoint->register_memory({memory_.data(), 10}, Access::local));
}

}  // namespace
}  // namespace weft::providers
