// The Unix socket for peers of the host: what it shows, and to whom it shows nothing.
#include "control/host_door.hpp"

#include <fcntl.h>
#include <poll.h>

#include <vector>

#include "base/random.hpp"
#include "control/host_peer.hpp"
#include "fixture.hpp"

namespace weft::core::test {
namespace {

/// A stranger of the engine's user and host that has said hello to it.
struct Acquainted {
  explicit Acquainted(const Engine& engine) : raw(Raw::connect(engine.plane->address())) {
    raw.send_preamble();
    raw.receive_preamble();
    claim = raw.receive_kind<Hello>().value().host;
  }
  HostPeer peer() const { return {claim.socket, "", claim.pass}; }

  Raw raw;
  HostClaim claim;
};

/// The answer, or why there is none.
Result<Answered> asked(const HostPeer& peer, const DescriptorName& name = {}) {
  return ask(peer, name).and_then([](const Descriptor& socket) -> Result<Answered> {
    pollfd readable{socket.get(), POLLIN, 0};
    if (::poll(&readable, 1, 30'000) != 1) return fail(Code::timed_out, "no answer");
    return receive_answer(socket.get());
  });
}

Descriptor visit(const std::string& socket) {
  Descriptor visitor = open_host_socket().value();
  const auto address = SocketAddress::abstract(socket);
  EXPECT_EQ(::connect(visitor.get(), address.get(), address.length()), 0);
  return visitor;
}

/// The other side closes it, at last.
bool is_closed(const Descriptor& socket) {
  pollfd readable{socket.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&readable, 1, 30'000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

TEST(HostDoor, ShowsItsProcessToThoseWithAPass) {
  Engine engine("engine");
  const Acquainted known(engine);
  EXPECT_EQ(known.claim.boot, boot_id());
  const auto answer = asked(known.peer());
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_NE(answer->nonce, HostNonce{});
  const auto process = process_by_socket(known.peer(), *answer);
  ASSERT_TRUE(process) << process.error().to_string();
  EXPECT_FALSE((*process)->ended());
  EXPECT_TRUE((*process)->watch());
  EXPECT_EQ((*process)->pid(), 0);
}

TEST(HostDoor, ShowsNothingWithoutThePass) {
  Engine engine("engine");
  const Acquainted known(engine), other(engine);
  EXPECT_NE(known.claim.pass, other.claim.pass);
  HostPeer peer = known.peer();
  peer.pass[0] ^= std::byte{1};
  EXPECT_FALSE(asked(peer));
  peer.pass = {};
  EXPECT_FALSE(asked(peer));
  EXPECT_FALSE(asked(known.peer(), {random_u64(), 1})) << "nothing is shown by this engine";
}

TEST(HostDoor, ThePassEndsWithItsConnection) {
  Engine engine("engine");
  Acquainted known(engine);
  ASSERT_TRUE(asked(known.peer()));
  known.raw.reset();
  const Deadline deadline = soon();
  while (asked(known.peer()) && !deadline.passed()) {
  }
  EXPECT_FALSE(asked(known.peer()));
}

TEST(HostDoor, NoiseGetsNothing) {
  Engine engine("engine");
  const Acquainted known(engine);
  HostQuestion good;
  good.pass = known.claim.pass;
  HostQuestion old = good, strange = good;
  ++old.version;
  strange.magic[0] = 'W';
  std::vector<Blob> noises = {Blob(1), Blob(sizeof good - 1), Blob(sizeof good + 1), Blob(100'000)};
  for (const HostQuestion& each : {old, strange}) {
    const auto bytes = std::as_bytes(std::span(&each, 1));
    noises.emplace_back(bytes.begin(), bytes.end());
  }
  for (const Blob& noise : noises) {
    const Descriptor visitor = visit(known.claim.socket);
    EXPECT_GE(::send(visitor.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(is_closed(visitor));
  }
  EXPECT_TRUE(asked(known.peer()));
}

TEST(HostDoor, SilentVisitorsTakeLimitedTimeAndRoom) {
  ControlConfig config = quick();
  config.handshake_time = 500ms;
  Engine engine("engine", 1, config);
  const Acquainted known(engine);
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(visit(known.claim.socket));
    if (i % 20 == 0) {
      EXPECT_TRUE(asked(known.peer()));
    }
  }
  for (const Descriptor& each : crowd) EXPECT_TRUE(is_closed(each));
}

TEST(HostDoor, ClosesWithItsEngine) {
  std::string socket;
  {
    Engine engine("engine");
    socket = Acquainted(engine).claim.socket;
  }
  const Descriptor visitor = open_host_socket().value();
  const auto address = SocketAddress::abstract(socket);
  EXPECT_NE(::connect(visitor.get(), address.get(), address.length()), 0);
}

/// Of a peer on this host whose page is nowhere in /proc.
Event met_with(const HostClaim& claim) {
  Engine engine("server");
  Raw raw = Raw::connect(engine.plane->address());
  raw.send_preamble();
  raw.receive_preamble();
  raw.send(Hello{introduce("raw"), claim});
  raw.send(Proof{.reason = "a raw socket"});
  EXPECT_TRUE(raw.receive_kind<Proof>());
  raw.send(Choice{});
  raw.send(Ready{});
  auto met = engine.recorder->wait(Event::meet);
  EXPECT_TRUE(met);
  return met.value_or(Event{});
}

TEST(OneHost, WithoutAProofIsTold) {
  const Event met = met_with({.boot = boot_id()});
  EXPECT_TRUE(met.near.one_host);
  EXPECT_FALSE(met.near.same_host);
  EXPECT_NE(met.near.reason.find("the peer has no socket"), std::string::npos) << met.near.reason;
}

TEST(OneHost, IsNotThatOfAnotherBoot) {
  EXPECT_FALSE(met_with({.boot = "another"}).near.one_host);
  EXPECT_FALSE(met_with({}).near.one_host);
}

TEST(OneHost, ASocketThatIsNotThereTellsTheSetting) {
  const Event met = met_with({.boot = boot_id(), .socket = "weft-nobody"});
  EXPECT_TRUE(met.near.one_host);
  EXPECT_FALSE(met.near.same_host);
  EXPECT_NE(met.near.reason.find("WEFT_HOST_DIR"), std::string::npos) << met.near.reason;
}

TEST(OneHost, ASocketThatIsSilentIsNotWaitedForLong) {
  const std::string name = "weft-silent-" + std::to_string(random_u64());
  const Descriptor silent = open_host_socket().value();
  const auto address = SocketAddress::abstract(name);
  ASSERT_EQ(::bind(silent.get(), address.get(), address.length()), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  const Event met = met_with({.boot = boot_id(), .socket = name});
  EXPECT_FALSE(met.near.same_host);
  EXPECT_NE(met.near.reason.find("does not answer"), std::string::npos) << met.near.reason;
}

TEST(OneHost, ASecondProofIsOutOfTurn) {
  const std::string name = "weft-silent-" + std::to_string(random_u64());
  const Descriptor silent = open_host_socket().value();
  const auto address = SocketAddress::abstract(name);
  ASSERT_EQ(::bind(silent.get(), address.get(), address.length()), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  Engine engine("server");
  Raw raw = Raw::connect(engine.plane->address());
  raw.send_preamble();
  raw.receive_preamble();
  raw.send(Hello{introduce("raw"), {.boot = boot_id(), .socket = name}});
  raw.send(Proof{.reason = "a raw socket"});
  raw.send(Proof{.reason = "a raw socket"});
  EXPECT_TRUE(engine.wait_for_trouble("a second proof out of turn"));
}

}  // namespace
}  // namespace weft::core::test
