// Two nodes in two processes, each on a simulated host of its own. The test's process is the one
// that acts; the other does as it is told.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <signal.h>

#include <map>

#include "efa_fabric.hpp"
#include "node.hpp"
#include "pattern.hpp"
#include "process.hpp"

namespace weft::efa_sim {

using namespace std::chrono_literals;

/// Runs once for every fabric that libfabric may have: the parameter.
class Pair : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t size = 8 << 20;

  void SetUp() override;
  void TearDown() override;

  bool direct() const { return GetParam() == "efa-direct"; }
  bool device_writes() const { return node_->device_writes(); }

  /// Repeats while there is no room, as users of libfabric do. Returns its result.
  template <typename Post>
  ssize_t post(Post post) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    ssize_t result = post();
    while (result == -FI_EAGAIN && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(100us);
      result = post();
    }
    return result;
  }
  ssize_t write(std::uint64_t operation, std::size_t at, std::size_t length);
  ssize_t write_data(std::uint64_t operation, std::size_t at, std::size_t length,
                     std::uint64_t data);
  ssize_t read(std::uint64_t operation, std::size_t at, std::size_t length);

  /// The completion of an operation of this side; none within the time is a failure of the test.
  Completion finish(std::uint64_t operation, std::chrono::milliseconds within = 30s);
  bool finished(std::uint64_t operation);
  /// Operations in the order in which they ended.
  const std::vector<std::uint64_t>& order() const { return order_; }

  std::string ask(const std::string& question) { return target_->ask(question); }
  void expect_there(std::uint64_t seed, std::size_t from, std::size_t length, std::size_t at);
  void fill(std::uint64_t seed) { test::fill({node_->memory(), size}, seed); }
  /// Asks until the answer begins like that; returns the last.
  std::string await_answer(const std::string& question, const std::string& beginning);

  std::unique_ptr<EfaControl> control_;
  std::unique_ptr<test::Child> target_;
  std::unique_ptr<Node> node_;
  Reach there_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;

 private:
  void gather();
  std::map<std::uint64_t, Completion> ended_;
  std::vector<std::uint64_t> order_;
};

/// Skips the test, with a plain reason, where the provider does writes by messages.
#define EFA_SKIP_UNLESS_DEVICE_WRITES() \
  if (!device_writes()) GTEST_SKIP() << "over this fabric the other process does the write"

}  // namespace weft::efa_sim
