// What programs test their recovery by: pairs of engines, and a switch for faults.
#include <gtest/gtest.h>

#include <weft/testkit.hpp>

#include "engines.hpp"

namespace weft::test::testkit_tests {
namespace {

using testkit::Fault, testkit::Faults;

constexpr std::size_t bytes = std::size_t{1} << 20;
constexpr Pair everything[] = {{0, 0, bytes}};

class Testkit : public testing::TestWithParam<std::string> {
 protected:
  Testkit() : pair_(must(testkit::pair(config_for(GetParam()), faults_))) {
    fill(bytes_of(source_), 7);
  }
  Result<Transfer> write(Deadline deadline = soon()) {
    TransferOptions options;
    options.deadline = deadline;
    return pair_.first.write(source_, there_, everything, std::move(options));
  }
  void expect_written() {
    auto transfer = must(write());
    ASSERT_TRUE(succeeds(transfer.wait(soon())));
    EXPECT_TRUE(holds(bytes_of(sink_), 7));
  }

  static std::span<std::byte> bytes_of(Segment& segment) {
    return {segment.data(), segment.size()};
  }

  Faults faults_;
  testkit::Pair pair_;
  Segment source_ = must(pair_.first.add(Memory::own(bytes)));
  Segment sink_ = must(pair_.second.add(Memory::own(bytes)));
  Grant grant_ = must(sink_.grant({}, Rights::write));
  Remote there_ = must(pair_.first.import(grant_.blob()));
};

TEST_P(Testkit, APairCarriesTransfers) {
  expect_written();
  EXPECT_EQ(pair_.to_first.name(), pair_.first.info().name);
}

TEST_P(Testkit, WhatIsDroppedTimesOutAndTheNextGoesThrough) {
  faults_.set({.drop = 1});
  auto lost = must(write(Deadline::in(200ms)));
  EXPECT_TRUE(fails_with(lost.wait(soon()), Code::timed_out));
  EXPECT_GT(faults_.counts().dropped, 0U);
  faults_.clear();
  expect_written();
}

TEST_P(Testkit, AFailureIsToldWithItsCause) {
  faults_.set({.fail = 1});
  auto failing = must(write(Deadline::in(5s)));
  const auto ended = failing.wait(soon());
  ASSERT_FALSE(ended);
  EXPECT_GT(faults_.counts().failed, 0U);
  faults_.clear();
}

TEST_P(Testkit, TheOthersCarryWhatAKilledRailWould) {
  ASSERT_EQ(pair_.first.info().rails.size(), 2U);
  faults_.kill(0);
  expect_written();
  faults_.clear();
}

TEST_P(Testkit, ADelayIsKept) {
  faults_.set({.delay = 1, .delay_by = 20ms});
  for (int round = 0; round < 20; ++round) expect_written();
  EXPECT_GT(faults_.counts().delayed, 0U);
}

TEST_P(Testkit, TheSwitchMayGoBeforeTheEngines) {
  auto made = must(testkit::pair(config_for(GetParam()), Faults()));
  EXPECT_TRUE(made.to_second.up());
}

INSTANTIATE_TEST_SUITE_P(Over, Testkit, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::testkit_tests
