// Configurations that can't work are refused before anything is opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "config/config_check.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Result<Config> checked(const Config& config) {
  return resolve_settings(config, {}).and_then(checked_config);
}

/// The sentence with which a changed default configuration is refused; empty if it is accepted.
std::string refusal(const std::function<void(Config&)>& change) {
  Config config;
  change(config);
  const auto checked = core::checked(config);
  if (checked) return "";
  EXPECT_EQ(checked.error().code(), Code::invalid_argument);
  return checked.error().message();
}

TEST(ConfigCheck, TheDefaultsPass) {
  const auto checked = core::checked({});
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->rail_address, "127.0.0.1");
}

TEST(ConfigCheck, BoundsAreNamedWithTheirNumbers) {
  EXPECT_THAT(refusal([](Config& c) { c.name = std::string(256, 'x'); }),
              HasSubstr("must be from 0 to 255"));
  EXPECT_EQ(refusal([](Config& c) { c.name = std::string(255, 'x'); }), "");
  EXPECT_THAT(refusal([](Config& c) { c.rails = 65; }),
              HasSubstr("rails is 65, and must be from 0 to 64"));
  EXPECT_THAT(refusal([](Config& c) { c.threads = 65; }), HasSubstr("threads is 65"));
  EXPECT_THAT(refusal([](Config& c) { c.max_message = 0; }), HasSubstr("from 1 to 1MiB"));
  EXPECT_THAT(refusal([](Config& c) { c.max_message = (1 << 20) + 1; }), HasSubstr("1048577"));
  EXPECT_THAT(refusal([](Config& c) { c.message_credits = 1; }), HasSubstr("from 2 to 1024"));
  EXPECT_THAT(refusal([](Config& c) { c.message_credits = 1025; }), HasSubstr("message_credits"));
  EXPECT_THAT(refusal([](Config& c) { c.bounce_buffers = 0; }), HasSubstr("bounce_buffers"));
  EXPECT_THAT(refusal([](Config& c) { c.bounce_buffer_bytes = 0; }),
              HasSubstr("bounce_buffer_bytes"));
  EXPECT_THAT(refusal([](Config& c) { c.bounce_buffer_bytes = (64U << 20) + 1; }),
              HasSubstr("bounce_buffer_bytes"));
  EXPECT_THAT(refusal([](Config& c) { c.max_transfers = 0; }),
              HasSubstr("max_transfers is 0, and must be at least 1"));
  EXPECT_THAT(refusal([](Config& c) { c.send_queue = 0; }), HasSubstr("send_queue"));
  EXPECT_THAT(refusal([](Config& c) { c.max_nics = 0; }), HasSubstr("max_nics"));
}

TEST(ConfigCheck, TimesMustMakeSense) {
  EXPECT_NE(refusal([](Config& c) { c.default_timeout = 0s; }), "");
  EXPECT_NE(refusal([](Config& c) { c.default_timeout = -1s; }), "");
  EXPECT_NE(refusal([](Config& c) { c.spin = -1ns; }), "");
  EXPECT_EQ(refusal([](Config& c) { c.spin = 0ns; }), "");
  EXPECT_NE(refusal([](Config& c) { c.heartbeat = 0s; }), "");
  EXPECT_NE(refusal([](Config& c) { c.death_after = c.heartbeat; }), "");
  EXPECT_EQ(refusal([](Config& c) { c.death_after = 2 * c.heartbeat; }), "");
  EXPECT_NE(refusal([](Config& c) { c.heartbeat = Nanoseconds::max(); }), "");
}

// A window is a number of chunks, kept in bytes.
TEST(ConfigCheck, ChunksAndWindowsWhoseProductOverflowsAreRefused) {
  EXPECT_THAT(refusal([](Config& c) { c.chunk_bytes = std::uint64_t{1} << 62; }),
              HasSubstr("chunk_bytes"));
  EXPECT_THAT(refusal([](Config& c) { c.window = std::numeric_limits<std::size_t>::max(); }),
              HasSubstr("window"));
  EXPECT_EQ(refusal([](Config& c) {
              c.chunk_bytes = std::uint64_t{1} << 30;
              c.window = 1 << 16;
            }),
            "");
}

// As the user wrote them, not as the program has them.
TEST(ConfigCheck, OptionsAreNamedAsTheyWereGiven) {
  const auto message = [](const Environment& environment) {
    const auto checked = resolve_settings({}, environment).and_then(checked_config);
    return checked ? "" : checked.error().message();
  };
  EXPECT_EQ(message({{"WEFT_HEARTBEAT", "8s"}}),
            "death_after must be at least twice WEFT_HEARTBEAT");
  EXPECT_EQ(message({{"WEFT_METRICS", "false"}, {"WEFT_METRICS_LISTEN", "127.0.0.1:0"}}),
            "WEFT_METRICS_LISTEN needs metrics, and WEFT_METRICS is false");
  EXPECT_THAT(message({{"WEFT_LISTEN", "0.0.0.0:7"}}), HasSubstr("WEFT_LISTEN names every"));
}

TEST(ConfigCheck, CredentialsAreOneOfTwoKindsAndWhole) {
  EXPECT_EQ(refusal([](Config& c) { c.secret_file = "secret"; }), "");
  const auto certificates = [](Config& c) {
    c.tls_certificate = "certificate";
    c.tls_key = "key";
    c.tls_authorities = "authorities";
  };
  EXPECT_EQ(refusal(certificates), "");
  EXPECT_THAT(refusal([](Config& c) { c.tls_key = "key"; }), HasSubstr("all three or none"));
  EXPECT_THAT(refusal([&](Config& c) {
                certificates(c);
                c.secret_file = "secret";
              }),
              HasSubstr("name one of them"));
  EXPECT_THAT(refusal([](Config& c) { c.tls_check_host = true; }), HasSubstr("tls_certificate"));
}

TEST(ConfigCheck, RailsGoWhereTheListenerIs) {
  const auto rail_address = [](const std::function<void(Config&)>& change) {
    Config config;
    change(config);
    const auto checked = core::checked(config);
    return checked ? checked->rail_address : checked.error().to_string();
  };
  EXPECT_EQ(rail_address([](Config& c) { c.listen = ""; }), "127.0.0.1");
  EXPECT_EQ(rail_address([](Config& c) { c.listen = "127.0.0.2:7"; }), "127.0.0.2");
  EXPECT_EQ(rail_address([](Config& c) { c.listen = "[::1]:7"; }), "::1");
  EXPECT_EQ(rail_address([](Config& c) { c.advertise = "127.0.0.3:7"; }), "127.0.0.3");
  EXPECT_EQ(rail_address([](Config& c) { c.rail_address = "127.0.0.4"; }), "127.0.0.4");
  EXPECT_EQ(rail_address([](Config& c) {
              c.listen = "0.0.0.0:7";
              c.advertise = "127.0.0.5:7";
            }),
            "127.0.0.5");
}

TEST(ConfigCheck, EveryInterfaceNeedsAnAddressToTellPeers) {
  EXPECT_THAT(refusal([](Config& c) { c.listen = "0.0.0.0:7"; }), HasSubstr("advertise"));
  EXPECT_THAT(refusal([](Config& c) { c.listen = "[::]:7"; }), HasSubstr("advertise"));
}

TEST(ConfigCheck, AnAddressThatIsNoneIsNamed) {
  EXPECT_THAT(refusal([](Config& c) { c.rail_address = "300.1.2.3"; }), HasSubstr("300.1.2.3"));
  EXPECT_NE(refusal([](Config& c) { c.listen = "[::1"; }), "x");
}

}  // namespace
}  // namespace weft::core
