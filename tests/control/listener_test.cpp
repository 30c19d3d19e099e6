// A name may have several addresses: an engine listens on all that are its machine's.
#include "control/listener.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>

#include <optional>

#include "fixture.hpp"

namespace weft::core::test {
namespace {

using asio::ip::tcp;

Endpoints endpoints(std::initializer_list<const char*> addresses, std::uint16_t port = 0) {
  Endpoints made;
  for (const char* each : addresses) made.emplace_back(asio::ip::make_address(each), port);
  return made;
}

ControlConfig named() {
  ControlConfig config = quick("some-name:0");
  config.allow_unauthenticated_network = true;
  return config;
}

/// A connection to each address comes in.
void expect_all_hear(asio::io_context& context, Listener& listener) {
  std::size_t heard = 0;
  listener.start([&](const tcp::socket&) { ++heard; });
  std::vector<Raw> callers;
  for (const tcp::endpoint& each : listener.bound())
    callers.push_back(Raw::connect(to_string(each)));
  while (heard < callers.size() && !soon().passed() && context.run_one_for(10s) > 0) {
  }
  EXPECT_EQ(heard, callers.size());
  listener.close();
}

void expect_one_port(const Endpoints& at) {
  asio::io_context context;
  const auto listener = Listener::open(context, named(), at);
  ASSERT_TRUE(listener) << listener.error().message();
  const Endpoints bound = (*listener)->bound();
  ASSERT_EQ(bound.size(), at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_EQ(bound[i].address(), at[i].address());
    EXPECT_EQ(bound[i].port(), bound[0].port());
  }
  EXPECT_NE(bound[0].port(), 0);
  EXPECT_EQ((*listener)->address(), to_string(bound[0]));
  expect_all_hear(context, **listener);
}

TEST(Listener, AllAddressesOfANameHaveOnePort) {
  expect_one_port(endpoints({"127.0.0.1", "127.0.1.1", "127.0.0.2"}));
  if (has_ipv6()) expect_one_port(endpoints({"::1", "127.0.0.1"}));
}

TEST(Listener, AddressesOfOtherMachinesAreLeftOut) {
  asio::io_context context;
  // The first is reserved for documentation.
  const auto listener = Listener::open(context, named(), endpoints({"192.0.2.1", "127.0.0.1"}));
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_EQ((*listener)->bound().size(), 1u);
  EXPECT_TRUE((*listener)->address().starts_with("127.0.0.1:")) << (*listener)->address();
}

TEST(Listener, APortInUseAtOneAddressIsRefused) {
  asio::io_context context;
  const auto other = Listener::open(context, named(), endpoints({"127.0.0.2"}));
  ASSERT_TRUE(other) << other.error().message();
  const std::uint16_t port = (*other)->bound()[0].port();
  const auto refused =
      Listener::open(context, named(), endpoints({"127.0.0.1", "127.0.0.2"}, port));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_NE(refused.error().message().find(fmt::format("127.0.0.2:{}", port)), std::string::npos)
      << refused.error().message();
}

TEST(Listener, EachAddressHasToBeGuarded) {
  asio::io_context context;
  ControlConfig config = named();
  config.allow_unauthenticated_network = false;
  const auto refused = Listener::open(context, config, endpoints({"127.0.0.1", "192.0.2.1"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::permission_denied);
  EXPECT_NE(refused.error().message().find("some-name:0 (192.0.2.1:0)"), std::string::npos)
      << refused.error().message();
}

TEST(Listener, AnEngineListensOnAllOfLocalhost) {
  Engine engine("engine", 1, quick("localhost:0")), client("client", 1, quick(""));
  const std::string address = engine.plane->address();
  const std::string port = address.substr(address.rfind(':'));
  EXPECT_NE(port, ":0");
  for (const std::string& each : {address, "127.0.0.1" + port, "localhost" + port}) {
    const auto link = client.connect(each);
    EXPECT_TRUE(link) << link.error().message();
  }
}

/// Of another interface than loopback, if this machine has one.
std::optional<asio::ip::address> own_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  std::optional<asio::ip::address> found;
  for (const ifaddrs* each = list; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    const auto* const in = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    const asio::ip::address_v4 address(ntohl(in->sin_addr.s_addr));
    if (!address.is_loopback()) found = address;
  }
  freeifaddrs(list);
  return found;
}

TEST(Listener, PeersAreToldAnAddressThatReachesThisMachine) {
  const auto told = [](const Endpoints& of) { return one_to_tell(of).address().to_string(); };
  EXPECT_EQ(told(endpoints({"127.0.1.1", "127.0.0.1"})), "127.0.1.1");
  EXPECT_EQ(told(endpoints({"203.0.113.1", "127.0.0.1"})), "127.0.0.1");
  EXPECT_EQ(told(endpoints({"203.0.113.1", "203.0.113.2"})), "203.0.113.1");
  const auto own = own_address();
  if (!own) GTEST_SKIP() << "this machine has loopback alone";
  // Debian gives a host's own name 127.0.1.1 first.
  Endpoints both = endpoints({"127.0.1.1"});
  both.emplace_back(*own, 0);
  EXPECT_EQ(told(both), own->to_string());
}

}  // namespace
}  // namespace weft::core::test
