// How often `weft demo` registers memory with its NICs. On a NIC this takes long and uses up its
// pages and regions, so what was registered once must serve all requests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "efa_fabric.hpp"

namespace weft::efa_sim {
namespace {

class Registering : public testing::TestWithParam<std::string> {
 protected:
  /// How many regions decode and prefill make together.
  std::uint64_t regions_for(unsigned requests) {
    const std::uint64_t before = device_.registrations().made;
    const std::string command =
        fmt::format("{} demo --quiet --json --providers efa --tokens 64 --memory {} --requests {}",
                    std::getenv("WEFT_COMMAND"), GetParam(), requests);
    EXPECT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
    return device_.registrations().made - before;
  }

  EfaControl device_ = EfaControl::of_environment();
};

TEST_P(Registering, DoesNotGrowWithRequests) {
  const std::uint64_t few = regions_for(4), many = regions_for(16);
  EXPECT_GT(few, 0U);
  // The provider's own buffers may be a few more; a request is none.
  EXPECT_LT(many, few + 12) << "4 requests: " << few << " regions, 16 requests: " << many;
}

INSTANTIATE_TEST_SUITE_P(Of, Registering, testing::Values("host", "shared"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::efa_sim
