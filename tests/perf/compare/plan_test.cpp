#include "compare/plan.hpp"

#include <gmock/gmock.h>

namespace weft::perf {
namespace {

using testing::HasSubstr;

Json point_at(std::uint64_t size, double gigabytes, double p99_by_p50 = 2) {
  Point point;
  point.work.size = size;
  return {{"point", point},
          {"provider", "net"},
          {"bytes_wrong", 0},
          {"gigabytes_per_second", {{"median", gigabytes}}},
          {"latency_ns", {{"p50", 1000}, {"p99", 1000 * p99_by_p50}}}};
}

Json measured(std::vector<Json> points) {
  return {{"points", std::move(points)}};
}

/// 64 tokens of Llama-3.1-8B are 8 MiB, a layer group of 8 has 1 MiB.
PlanOptions request() {
  PlanOptions options;
  options.kv = {"Llama-3.1-8B", "bf16", 64, 16, 8, 1, 1};
  options.prefill_seconds = 1;
  return options;
}

constexpr double request_size = 8 << 20;

TEST(Plan, TakesWhatWasMeasuredAtTheSize) {
  const auto made = predict(measured({point_at(1 << 20, 0.008388608)}), request());
  ASSERT_TRUE(made) << made.error().to_string();
  ASSERT_EQ(made->size(), 1U);
  const Prediction& only = made->front();
  EXPECT_EQ(only.series, "net write, window 1");
  EXPECT_EQ(only.request_bytes, request_size);
  EXPECT_EQ(only.operation_bytes, 1U << 20);
  EXPECT_DOUBLE_EQ(only.seconds, 1);
  EXPECT_DOUBLE_EQ(only.tail_seconds, 2);
  ASSERT_TRUE(only.ttft);
  EXPECT_DOUBLE_EQ(only.ttft->share, 0.5);
  // Of 1 s, 7/8 fit into the prefill.
  EXPECT_DOUBLE_EQ(only.ttft->overlapped_seconds, 0.125);
  EXPECT_DOUBLE_EQ(only.ttft->overlapped_share, 0.125 / 1.125);
  EXPECT_FALSE(only.beyond);
  EXPECT_THAT(text_of(*made, request()), HasSubstr("50.0 %"));
  EXPECT_EQ(json_of(*made, request())["predictions"][0]["share_of_ttft"], 0.5);
}

/// What the transfer takes is known all the same.
TEST(Plan, WithoutThePrefillsTimeThereIsNoShareOfIt) {
  PlanOptions options = request();
  options.prefill_seconds.reset();
  const auto made = predict(measured({point_at(1 << 20, 0.008388608)}), options);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_DOUBLE_EQ(made->front().seconds, 1);
  EXPECT_FALSE(made->front().ttft);
  EXPECT_THAT(text_of(*made, options), testing::Not(HasSubstr("overlapped")));
  EXPECT_THAT(text_of(*made, options), HasSubstr("With --prefill-seconds"));
  const Json json = json_of(*made, options);
  EXPECT_FALSE(json.contains("prefill_seconds"));
  EXPECT_FALSE(json["predictions"][0].contains("share_of_ttft"));
  EXPECT_EQ(json["predictions"][0]["seconds"], 1.0);
}

/// Half the way on a logarithmic axis is the geometric mean on the other.
TEST(Plan, InterpolatesBetweenSizes) {
  const auto made = predict(
      measured({point_at(256 << 10, 1), point_at(4 << 20, 4), point_at(8 << 20, 100)}), request());
  ASSERT_TRUE(made);
  EXPECT_NEAR(made->front().seconds, request_size / 2e9, 1e-9);
}

TEST(Plan, SaysWhatGoesBeyond) {
  const auto made = predict(measured({point_at(64 << 10, 1), point_at(512 << 10, 2)}), request());
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->front().beyond);
  EXPECT_DOUBLE_EQ(made->front().seconds, request_size / 2e9);
  EXPECT_THAT(text_of(*made, request()), HasSubstr("beyond what was measured"));
}

/// A slow fabric can't hide behind the prefill.
TEST(Plan, WhatDoesNotFitIntoThePrefillIsLeft) {
  const auto made = predict(measured({point_at(1 << 20, 0.0008388608)}), request());
  ASSERT_TRUE(made);
  EXPECT_DOUBLE_EQ(made->front().seconds, 10);
  EXPECT_DOUBLE_EQ(made->front().ttft->overlapped_seconds, 10 - 0.875);
}

TEST(Plan, RanksShareARequest) {
  PlanOptions options = request();
  options.kv.tp = 4;
  const auto made = predict(measured({point_at(1 << 18, 1)}), options);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->front().request_bytes, request_size / 4);
}

TEST(Plan, RefusesWhatItCantGoBy) {
  EXPECT_EQ(predict(measured({point_at(2 << 20, 1)}), request()).error().code(),
            Code::invalid_argument);
  EXPECT_EQ(predict(measured({}), request()).error().code(), Code::not_found);
  Json message = point_at(1 << 20, 1);
  message["point"]["work"]["operation"] = "message";
  Json wrong = point_at(1 << 20, 1);
  wrong["bytes_wrong"] = 5;
  Json loaded = point_at(1 << 20, 1);
  loaded["point"]["work"]["rate"] = 10;
  EXPECT_EQ(predict(measured({message, wrong, loaded}), request()).error().code(), Code::not_found);
  EXPECT_EQ(predict({{"points", {5}}}, request()).error().code(), Code::protocol_mismatch);
  EXPECT_EQ(predict(Json::object(), request()).error().code(), Code::protocol_mismatch);
  PlanOptions other = request();
  other.kv.model = "nobody";
  EXPECT_EQ(predict(measured({point_at(1 << 20, 1)}), other).error().code(), Code::not_found);
  other = request();
  other.kv.tp = 3;
  EXPECT_FALSE(predict(measured({point_at(1 << 20, 1)}), other));
}

}  // namespace
}  // namespace weft::perf
