// Addresses, and what goes wrong with them.
#include "control/address.hpp"

#include <gtest/gtest.h>

#include "fixture.hpp"

namespace weft::core::test {
namespace {

TEST(Address, Parsing) {
  const auto expect = [](std::string_view text, std::string_view host, int port) {
    const Result<HostPort> parsed = parse_address(text);
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port ? *parsed->port : -1, port);
  };
  expect("127.0.0.1:7000", "127.0.0.1", 7000);
  expect("[::1]:65535", "::1", 65535);
  expect("[fe80::1%eth0]", "fe80::1%eth0", -1);
  expect("node-7.example.org:0", "node-7.example.org", 0);
  expect("host", "host", -1);
  for (const std::string& wrong :
       {std::string(""), std::string(":7000"), std::string("host:"), std::string("host:65536"),
        std::string("host:-1"), std::string("host:7x"), std::string("::1"), std::string("::1:7"),
        std::string("[::1"), std::string("[::1]7"), std::string("[]:7"), std::string("a b:7"),
        std::string("a\n:7"), std::string(9999, 'a') + ":7"}) {
    const Result<HostPort> parsed = parse_address(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code(), Code::invalid_argument);
    EXPECT_LT(parsed.error().message().size(), 500u);
  }
  EXPECT_EQ(format_address("::1", 7), "[::1]:7");
  EXPECT_EQ(format_address("1.2.3.4", 7), "1.2.3.4:7");
}

void expect_no_start(const ControlConfig& config, Code code, std::string_view part,
                     const Introduction& self = introduce("x")) {
  Recorder recorder;
  const auto started = ControlPlane::start(config, self, recorder);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), code);
  EXPECT_NE(started.error().message().find(part), std::string::npos) << started.error().message();
}

TEST(Listen, BeyondLoopbackOnlyWhenAskedFor) {
  ControlConfig config = quick("0.0.0.0:0");
  expect_no_start(config, Code::permission_denied, "set allow_unauthenticated_network");
  config.advertise = "127.0.0.1";
  expect_no_start(config, Code::permission_denied, "set allow_unauthenticated_network");
  config.allow_unauthenticated_network = true;
  Engine engine("engine", 1, config), client("client", 1, quick(""));
  EXPECT_TRUE(engine.plane->address().starts_with("127.0.0.1:")) << engine.plane->address();
  EXPECT_FALSE(engine.plane->address().ends_with(":0"));
  EXPECT_TRUE(client.connect(engine));
  config.advertise = "";
  expect_no_start(config, Code::invalid_argument, "needs `advertise`");
}

TEST(Listen, Advertise) {
  ControlConfig config = quick();
  config.advertise = "nat.example.org:1234";
  EXPECT_EQ(Engine("engine", 1, config).plane->address(), "nat.example.org:1234");
  config.advertise = "::1";
  expect_no_start(config, Code::invalid_argument, "brackets");
  config.listen = "";
  expect_no_start(config, Code::invalid_argument, "requires `listen`");
}

TEST(Listen, Failures) {
  Engine engine("engine");
  expect_no_start(quick(engine.plane->address()), Code::unavailable, "the port is in use already");
  expect_no_start(quick("nonsense"), Code::not_found, "can't be resolved");
  expect_no_start(quick("127.0.0.1:x"), Code::invalid_argument, "the port is a number");
  ControlConfig config = quick("192.0.2.1:0");  // reserved for documentation
  config.allow_unauthenticated_network = true;
  expect_no_start(config, Code::invalid_argument, "no interface of this machine has that address");
}

TEST(Listen, BadSettings) {
  expect_no_start(quick(), Code::invalid_argument, "1 to 255 bytes", introduce(""));
  expect_no_start(quick(), Code::invalid_argument, "1 to 255 bytes", introduce("a\nb"));
  expect_no_start(quick(), Code::invalid_argument, "1 to 255 bytes",
                  introduce(std::string(256, 'a')));
  Introduction self = introduce("x");
  self.rails.resize(257, self.rails[0]);
  expect_no_start(quick(), Code::invalid_argument, "257 rails", self);
  self.rails.resize(200);
  for (RailAddress& rail : self.rails) rail.address.resize(512);
  expect_no_start(quick(), Code::invalid_argument, "more than peers accept", self);
}

TEST(Listen, PortIsFreeAgainAfterStop) {
  std::string address;
  for (int i = 0; i < 3; ++i) {
    Engine engine("engine", 1, quick(address.empty() ? "127.0.0.1:0" : address));
    Engine client("client", 1, quick(""));
    ASSERT_TRUE(client.connect(engine));
    address = engine.plane->address();
  }
}

TEST(Connect, Failures) {
  Engine engine("engine");
  const auto expect = [&](const std::string& address, Code code, std::string_view part) {
    const Result<LinkId> link = engine.connect(address);
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().code(), code) << link.error().message();
    EXPECT_NE(link.error().message().find(part), std::string::npos) << link.error().message();
  };
  expect("127.0.0.1:1", Code::unavailable, "connection refused: nothing listens at 127.0.0.1:1");
  expect("localhost:1", Code::unavailable, "connection refused: nothing listens at localhost:1 (");
  expect("127.0.0.1:0", Code::invalid_argument, "names no port");
  expect("127.0.0.1", Code::invalid_argument, "names no port");
  expect(":7000", Code::invalid_argument, "names no host");
  expect("no-such-host.invalid:7000", Code::not_found, "'no-such-host.invalid' can't be resolved");
  expect("255.255.255.255:7000", Code::unavailable, "255.255.255.255:7000");
}

TEST(Connect, NameIsTriedAtAllItsAddresses) {
  Engine engine("engine"), client("client", 1, quick(""));
  const HostPort where = parse_address(engine.plane->address()).value();
  // localhost may mean ::1 first, where nobody listens.
  EXPECT_TRUE(client.connect(format_address("localhost", *where.port)));
}

}  // namespace
}  // namespace weft::core::test
