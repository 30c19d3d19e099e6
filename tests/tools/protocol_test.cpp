#include "demo/protocol.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>

#include "common/exchange.hpp"
#include "demo/report.hpp"

namespace weft::tool {
namespace {

Hello some_hello() {
  kv::LayoutOptions options;
  options.blocks = 10;
  options.parallel.tp = {2, 1};
  options.order = kv::Order::block_major;
  return {{kv::find_model("qwen3-8b").value(), options, {3, 2}}, 100, 3, 2, 4, ~std::uint64_t{0}};
}

TEST(Protocol, HelloComesBackAsItWas) {
  const auto read = from_json<Hello>(parse(to_bytes(to_json(some_hello()))).value());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read), to_json(some_hello()));
  EXPECT_EQ(read->cache.model.name, "Qwen3-8B");
  EXPECT_EQ(read->cache.options.order, kv::Order::block_major);
  EXPECT_EQ(read->cache.pp.rank, 2U);
}

TEST(Protocol, OtherDocumentsComeBackAsTheyWere) {
  const Granted granted{{}, {{1, 2}, {3}}, {"a", "b"}, {4, 5}};
  EXPECT_EQ(to_json(from_json<Granted>(to_json(granted)).value()), to_json(granted));
  const Acknowledgement acknowledgement{1, 2, "wrong"};
  EXPECT_EQ(to_json(from_json<Acknowledgement>(to_json(acknowledgement)).value()),
            to_json(acknowledgement));
  EXPECT_EQ(from_json<Welcome>(to_json(Welcome{"no", {}})).value().refusal, "no");
  EXPECT_EQ(from_json<Request>(to_json(Request{5})).value().number, 5U);
}

TEST(Protocol, WhatIsNestedTooDeeplyIsRefused) {
  const auto read = [](std::size_t depth) {
    const std::string text = std::string(depth, '[') + std::string(depth, ']');
    return parse(std::as_bytes(std::span(text)));
  };
  EXPECT_TRUE(read(30));
  for (const std::size_t depth : {100U, 1'000'000U}) {
    const auto deep = read(depth);
    ASSERT_FALSE(deep);
    EXPECT_EQ(deep.error().code(), Code::protocol_mismatch);
  }
}

TEST(Protocol, AnotherVersionIsSaidSo) {
  Json json = to_json(some_hello());
  json["version"] = protocol_version + 1;
  const auto read = from_json<Hello>(json);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::protocol_mismatch);
  EXPECT_NE(read.error().message().find("version"), std::string::npos);
}

TEST(Protocol, WhatIsNotUnderstoodIsAnErrorAndNoCrash) {
  const std::vector<std::function<void(Json&)>> damages = {
      [](Json& json) { json = Json(); },
      [](Json& json) { json = Json::array(); },
      [](Json& json) { json.erase("cache"); },
      [](Json& json) { json["tokens"] = -1; },
      [](Json& json) { json["tokens"] = 0; },
      [](Json& json) { json["tokens"] = max_tokens + 1; },
      [](Json& json) { json["requests"] = 1.5; },
      [](Json& json) { json["concurrency"] = "2"; },
      [](Json& json) { json["cache"]["model"] = "unknown"; },
      [](Json& json) { json["cache"]["model"] = 3; },
      [](Json& json) { json["cache"]["dtype"] = "fp4"; },
      [](Json& json) { json["cache"]["blocks"] = std::uint64_t{1} << 40; },
      [](Json& json) { json["cache"]["pp"]["rank"] = 3; },
      [](Json& json) { json["cache"]["tp"]["size"] = 0; },
      [](Json& json) { json["cache"]["dp"] = 1; },
      [](Json& json) { json["cache"] = "x"; },
  };
  for (const auto& damage : damages) {
    Json json = to_json(some_hello());
    damage(json);
    const auto read = from_json<Hello>(json);
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(read.error().code(), Code::protocol_mismatch);
  }
  EXPECT_FALSE(from_json<Granted>(Json{{"blocks", {1}}, {"grants", {}}, {"signals", {}}}));
  EXPECT_FALSE(from_json<Granted>(
      Json{{"blocks", Json::array()}, {"grants", {1}}, {"signals", Json::array()}}));
  EXPECT_FALSE(from_json<RunReport>(Json{{"command", "decode"}}));
  EXPECT_FALSE(parse({}));
  EXPECT_FALSE(parse(std::as_bytes(std::span("{\"a\":"))));
}

TEST(Report, ComesBackAsItWas) {
  RunReport report;
  report.command = "prefill";
  report.model = "Llama-3.1-8B";
  report.bytes = 1 << 20;
  report.first_group = {1, 2, 3};
  report.movement = {10, 5, {{"shm:0", 5, 1 << 20}}, "bounce", "because"};
  report.problem = "one byte";
  EXPECT_EQ(to_json(from_json<RunReport>(to_json(report)).value()), to_json(report));
}

TEST(Report, CountsTimeInWhichRequestsOverlapOnce) {
  Measurement measurement;
  const Clock::time_point start{std::chrono::seconds(100)};
  const auto at = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  measurement.request(at(0), at(1), at(4));
  measurement.request(at(2), at(3), at(6));
  measurement.request(at(10), at(12), at(13));
  RunReport report;
  measurement.into(report);
  EXPECT_DOUBLE_EQ(report.moving_seconds, 9);
  EXPECT_DOUBLE_EQ(report.first_group.least, 1);
  EXPECT_DOUBLE_EQ(report.first_group.median, 1);
  EXPECT_DOUBLE_EQ(report.first_group.greatest, 2);
  EXPECT_DOUBLE_EQ(report.request.median, 4);
}

TEST(Report, ShowsWhatWasWrong) {
  RunReport report;
  EXPECT_NE(table(report).find("every byte right"), std::string::npos);
  report.problem = "request 3, layer 1";
  EXPECT_NE(table(report).find("request 3, layer 1"), std::string::npos);
  EXPECT_EQ(table(report).find("every byte right"), std::string::npos);
  EXPECT_FALSE(to_json(report).at("ok").get<bool>());
}

}  // namespace
}  // namespace weft::tool
