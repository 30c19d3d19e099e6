#include "providers/libfabric/under_way.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "providers/libfabric/endpoint_gate.hpp"

namespace weft::providers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Ends final : CompletionHandler {
  void completed(Posted& posted, const Completion& completion) override {
    EXPECT_TRUE(completion.cut);
    ended.push_back(&posted);
    if (again) under_way->add(posted, false);
  }
  std::vector<const Posted*> ended;
  UnderWay* under_way = nullptr;
  bool again = false;
};

class UnderWayTest : public testing::Test {
 protected:
  UnderWayTest() {
    ends.under_way = &under_way;
    for (Posted& each : operations) each.handler = &ends;
  }
  void end_all() {
    Completion cut;
    cut.cut = true;
    under_way.end_all(cut);
  }
  UnderWay under_way;
  Ends ends;
  std::array<Posted, 4> operations;
};

TEST_F(UnderWayTest, ThoseThatHaveNotEndedAreToldInTheirOrder) {
  end_all();
  EXPECT_THAT(ends.ended, IsEmpty());
  for (Posted& each : operations) under_way.add(each, false);
  under_way.remove(operations[1]);
  under_way.remove(operations[3]);
  end_all();
  EXPECT_THAT(ends.ended, ElementsAre(&operations[0], &operations[2]));
  end_all();
  EXPECT_EQ(ends.ended.size(), 2U);
}

TEST_F(UnderWayTest, WhatIsPostedAnewMeanwhileIsNotToldOf) {
  for (Posted& each : operations) under_way.add(each, false);
  ends.again = true;
  end_all();
  EXPECT_EQ(ends.ended.size(), operations.size());
  ends.again = false;
  end_all();
  EXPECT_EQ(ends.ended.size(), 2 * operations.size());
}

TEST_F(UnderWayTest, CountsWhatIsInTheSendQueue) {
  for (std::size_t i = 0; i < operations.size(); ++i) under_way.add(operations[i], i != 1);
  EXPECT_EQ(under_way.sending(), 3U);
  under_way.remove(operations[1]);
  EXPECT_EQ(under_way.sending(), 3U) << "a receive";
  under_way.remove(operations[2]);
  EXPECT_EQ(under_way.sending(), 2U);
  under_way.add(operations[2], false);
  EXPECT_EQ(under_way.sending(), 2U);
  end_all();
  EXPECT_EQ(under_way.sending(), 0U);
}

TEST(EndpointGateTest, WhoShutsItWaitsForThoseWhoAreIn) {
  EndpointGate gate;
  auto pass = std::make_unique<EndpointGate::Pass>(gate);
  EXPECT_TRUE(*pass);
  std::atomic<bool> shut{false};
  std::thread shutter([&] {
    gate.shut();
    shut = true;
  });
  EXPECT_FALSE(shut);
  pass.reset();
  shutter.join();
  gate.open();
  EXPECT_TRUE(EndpointGate::Pass(gate));
}

TEST(EndpointGateTest, WhoComesMeanwhileWaitsForAWhileAndNoLonger) {
  EndpointGate gate;
  gate.shut();
  EXPECT_FALSE(EndpointGate::Pass(gate));
  std::thread opener([&] { gate.open(); });
  EXPECT_TRUE(EndpointGate::Pass(gate));
  opener.join();
}

}  // namespace
}  // namespace weft::providers
