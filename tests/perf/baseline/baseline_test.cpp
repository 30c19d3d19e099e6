#include "baseline/baseline.hpp"

#include <gmock/gmock.h>

#include "baseline/socket_stream.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;

constexpr auto baseline_patience = std::chrono::seconds(20);

TEST(Baseline, Names) {
  for (const char* name :
       {"contiguous", "wire", "raw", "raw:2", "memcpy", "memcpy:4", "socket", "disk", "fio"})
    EXPECT_EQ(parse_baseline(name).value().name(), name);
  for (const char* name : {"", "memcpy:", "memcpy:0", "memcpy:9999", "memcpy:x", "raw:", "raw:0",
                           "raw:17", "socket:2", "tcp", "disk:2", "fio:2", "wire:2"})
    EXPECT_EQ(parse_baseline(name).error().code(), Code::invalid_argument) << name;
}

TEST(Baseline, IsOfAsManyInitiatorsAsItCanBe) {
  const auto refusal = [](const char* name, std::uint64_t initiators, bool elsewhere,
                          unsigned cores = 64) {
    const auto fits =
        check(parse_baseline(name).value(), Sites{initiators, 1, elsewhere, false, cores});
    return fits ? std::string("fits") : fits.error().message();
  };
  for (const char* name : {"contiguous", "raw", "memcpy", "memcpy:4", "socket"})
    EXPECT_EQ(refusal(name, 1, false, 1), "fits") << name;
  for (const char* name : {"contiguous", "raw", "memcpy", "memcpy:4"})
    EXPECT_EQ(refusal(name, 16, false), "fits") << name;
  EXPECT_THAT(refusal("socket", 2, false), HasSubstr("one stream"));
  EXPECT_THAT(refusal("raw", 17, false), HasSubstr("17 endpoints, and has 16 at most"));
  EXPECT_THAT(refusal("raw:4", 5, false), HasSubstr("20 endpoints, and has 16 at most"));
  EXPECT_EQ(refusal("raw:4", 4, false), "fits");
  EXPECT_THAT(refusal("raw:2", 1, false, 3), HasSubstr("polls on 4 cores"));
  EXPECT_THAT(refusal("raw", 16, false, 31), HasSubstr("polls on 32 cores"));
  EXPECT_EQ(refusal("memcpy:4", 64, false), "fits");
  EXPECT_THAT(refusal("memcpy:5", 64, false), HasSubstr("would have 320 threads"));
  EXPECT_EQ(refusal("contiguous", 64, true), "fits");
  EXPECT_EQ(refusal("wire", 64, true), "fits");
  for (const char* name : {"raw", "memcpy", "socket", "disk", "fio"})
    EXPECT_THAT(refusal(name, 1, true), HasSubstr("on this machine")) << name;
}

TEST(Baseline, RawPollsHereForATargetOnThisMachineToo) {
  const auto fits = [](bool target_elsewhere) {
    return check(parse_baseline("raw:4").value(), Sites{1, 1, false, target_elsewhere, 4})
        .has_value();
  };
  EXPECT_FALSE(fits(false));
  EXPECT_TRUE(fits(true));
}

TEST(Baseline, OneStreamIsOfOneTarget) {
  const auto fits = [](const char* name) {
    return check(parse_baseline(name).value(), Sites{1, 2, false, false, 64}).has_value();
  };
  EXPECT_FALSE(fits("socket"));
  for (const char* name : {"contiguous", "raw", "raw:2", "memcpy", "memcpy:4"})
    EXPECT_TRUE(fits(name)) << name;
}

/// The same bytes by the same engines, and nothing but their pieces differs.
TEST(Baseline, ContiguousIsOnePieceForEachOperation) {
  Point point;
  point.work.kv = {"Llama-3.1-8B", "bf16", 64, 16, 8, 1, 1};
  point.work.size = bytes_of_request(point.work.kv).value();
  point.work.window = 3;
  const Point beside = contiguous(point);
  ASSERT_TRUE(check(beside));
  EXPECT_EQ(beside.fabric, point.fabric);
  const auto load = lay_out(beside.work).value();
  EXPECT_EQ(load.operation_bytes, lay_out(point.work).value().operation_bytes);
  EXPECT_EQ(load.pairs.size(), 3U);
  EXPECT_EQ(load.parts, 1U);
}

TEST(SocketStream, CountsWhatArrives) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    auto sink = StreamSink::open(address, 10'000, baseline_patience);
    if (!sink && std::string_view(address) == "::1") continue;  // No IPv6 here.
    ASSERT_TRUE(sink) << sink.error().to_string();
    const auto sent =
        stream_to(address, sink->port(), 4096, std::chrono::milliseconds(20), baseline_patience);
    ASSERT_TRUE(sent) << sent.error().to_string();
    EXPECT_GT(sent->bytes, 0U);
    EXPECT_GE(sent->seconds, 0.02);
    const auto received = sink->finish();
    ASSERT_TRUE(received) << received.error().to_string();
    EXPECT_EQ(*received, sent->bytes);
  }
}

TEST(SocketStream, WaitsNoLongerThanItMay) {
  auto sink = StreamSink::open("127.0.0.1", 100, std::chrono::milliseconds(50));
  ASSERT_TRUE(sink);
  EXPECT_EQ(sink->finish().error().code(), Code::timed_out);
  EXPECT_FALSE(stream_to("127.0.0.1", 1, 100, std::chrono::milliseconds(10), baseline_patience));
  EXPECT_FALSE(StreamSink::open("192.0.2.1", 100, baseline_patience));
}

}  // namespace
}  // namespace weft::perf
