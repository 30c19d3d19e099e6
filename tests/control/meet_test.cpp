// Two engines meet, talk, and part.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "control/same_host.hpp"
#include "fixture.hpp"
#include "wire/sentence.hpp"

namespace weft::core::test {
namespace {

Blob some_bytes(std::size_t size) {
  Blob blob(size);
  for (std::size_t i = 0; i < size; ++i) blob[i] = static_cast<std::byte>(i * 7);
  return blob;
}

void meet_at(const std::string& listen) {
  Introduction self = introduce("server", 11);
  self.rails.push_back({.provider = "shm",
                        .protocol = 9,
                        .address_format = 2,
                        .same_host_only = true,
                        .address = some_bytes(300),
                        .packet = 8928});
  self.max_message = 1;
  self.message_credits = 2;
  self.bounce_buffers = 3;
  self.bounce_buffer_bytes = std::uint64_t{1} << 40;
  Engine server(self, quick(listen)), client("client", 12, quick(""));
  EXPECT_EQ(client.plane->address(), "");
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link) << link.error().message();

  const auto there = server.recorder->wait(Event::meet);
  const auto here = client.recorder->wait(Event::meet);
  ASSERT_TRUE(there && here);
  EXPECT_TRUE(server.recorder->wait(Event::up));
  EXPECT_EQ(client.recorder->count(Event::up), 1u);
  EXPECT_EQ(here->link, *link);
  EXPECT_EQ(here->peer.name, "server");
  EXPECT_EQ(here->peer.incarnation, 11u);
  EXPECT_EQ(here->peer.address, server.plane->address());
  ASSERT_EQ(here->peer.rails.size(), 2u);
  EXPECT_EQ(here->peer.rails[1].provider, "shm");
  EXPECT_EQ(here->peer.rails[1].protocol, 9u);
  EXPECT_EQ(here->peer.rails[1].address_format, 2u);
  EXPECT_TRUE(here->peer.rails[1].same_host_only);
  EXPECT_EQ(here->peer.rails[1].address, some_bytes(300));
  EXPECT_EQ(here->peer.rails[1].packet, 8928u);
  EXPECT_EQ(here->peer.max_message, 1u);
  EXPECT_EQ(here->peer.message_credits, 2u);
  EXPECT_EQ(here->peer.bounce_buffers, 3u);
  EXPECT_EQ(here->peer.bounce_buffer_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(here->peer.token, there->self.token);
  EXPECT_EQ(there->peer.token, here->self.token);
  EXPECT_NE(here->self.token, 0u);
  EXPECT_NE(here->self.token, there->self.token);
}

TEST(Meet, Ipv4) {
  meet_at("127.0.0.1:0");
}
TEST(Meet, HostName) {
  meet_at("localhost:0");
}
TEST(Meet, Ipv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no ::1 here";
  meet_at("[::1]:0");
}

template <typename Kind>
void expect_round_trip(Engine& from, LinkId link, Engine& to, std::size_t nth, const Kind& notice,
                       const std::function<void(const Kind&)>& check) {
  from.plane->send(link, notice);
  const auto event = to.recorder->wait(Event::received, nth);
  ASSERT_TRUE(event);
  const Kind* got = std::get_if<Kind>(&event->notice);
  ASSERT_NE(got, nullptr);
  check(*got);
}

void expect_all_notices(Engine& from, LinkId link, Engine& to) {
  expect_round_trip<LookupRequest>(from, link, to, 0, {1, std::string(255, 'n')}, [](auto& got) {
    EXPECT_EQ(got.request, 1u);
    EXPECT_EQ(got.name, std::string(255, 'n'));
  });
  expect_round_trip<LookupAbandoned>(from, link, to, 1, {2},
                                     [](auto& got) { EXPECT_EQ(got.request, 2u); });
  expect_round_trip<LookupReply>(from, link, to, 2, {3, some_bytes(limits::grant)}, [](auto& got) {
    EXPECT_EQ(got.request, 3u);
    EXPECT_EQ(got.grant, some_bytes(limits::grant));
  });
  expect_round_trip<SignalFailed>(
      from, link, to, 3,
      {~std::uint64_t{0}, Code::timed_out, "late\nand long" + std::string(9999, 'x'), true, 77},
      [](auto& got) {
        EXPECT_EQ(got.signal, ~std::uint64_t{0});
        EXPECT_EQ(got.code, Code::timed_out);
        EXPECT_EQ(got.reason.size(), limits::sentence);
        EXPECT_EQ(got.reason.substr(0, 9), "late?and ");
        EXPECT_TRUE(got.reads);
        EXPECT_EQ(got.carried, 77u);
      });
  expect_round_trip<RevokeRequest>(from, link, to, 4, {6},
                                   [](auto& got) { EXPECT_EQ(got.lease, 6u); });
  expect_round_trip<RevokeConfirmed>(from, link, to, 5, {7},
                                     [](auto& got) { EXPECT_EQ(got.lease, 7u); });
  expect_round_trip<LookupReply>(from, link, to, 6, {8, {}},
                                 [](auto& got) { EXPECT_TRUE(got.grant.empty()); });
  expect_round_trip<GrantStatus>(from, link, to, 7, {9, true, 3s}, [](auto& got) {
    EXPECT_EQ(got.request, 9u);
    EXPECT_TRUE(got.held);
    EXPECT_EQ(got.left, 3s);
    EXPECT_FALSE(got.lent);
  });
  GrantStatus lends{9, true};
  lends.lent = {some_bytes(64), 1, 2};
  lends.not_lent = "or not";
  expect_round_trip<GrantStatus>(from, link, to, 8, lends, [](auto& got) {
    ASSERT_TRUE(got.lent);
    EXPECT_EQ(got.lent->handle, some_bytes(64));
    EXPECT_EQ(got.lent->offset, 1u);
    EXPECT_EQ(got.lent->address, 2u);
    EXPECT_EQ(got.not_lent, "or not");
  });
  expect_round_trip<FallbackMessage>(
      from, link, to, 9, {some_bytes(limits::message)},
      [](auto& got) { EXPECT_EQ(got.bytes, some_bytes(limits::message)); });
}

TEST(Meet, NoticesBothWays) {
  Engine server("server"), client("client");
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link);
  const auto up = server.recorder->wait(Event::up);
  ASSERT_TRUE(up);
  expect_all_notices(client, *link, server);
  expect_all_notices(server, up->link, client);
}

TEST(Meet, NoticesKeepTheirOrder) {
  Engine server("server"), client("client");
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link);
  constexpr std::size_t count = 5000;
  for (std::size_t i = 0; i < count; ++i) client.plane->send(*link, RevokeConfirmed{i});
  ASSERT_TRUE(server.recorder->wait(Event::received, count - 1));
  std::size_t next = 0;
  for (const Event& event : server.recorder->events()) {
    if (event.kind != Event::received) continue;
    EXPECT_EQ(std::get<RevokeConfirmed>(event.notice).lease, next++);
  }
}

TEST(Meet, OversizeNoticeIsReportedAndNotSent) {
  Engine server("server"), client("client");
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link);
  client.plane->send(*link, LookupReply{1, Blob(limits::grant + 1)});
  client.plane->send(*link, LookupRequest{2, std::string(256, 'n')});
  client.plane->send(*link, RevokeConfirmed{3});
  EXPECT_TRUE(client.wait_for_trouble("a grant has 1048577 bytes"));
  EXPECT_TRUE(client.wait_for_trouble("a grant's name has 256 bytes"));
  const auto got = server.recorder->wait(Event::received);
  ASSERT_TRUE(got);
  EXPECT_TRUE(std::holds_alternative<RevokeConfirmed>(got->notice));
}

TEST(Meet, RefusalSentenceReachesTheOther) {
  Engine server("server"), client("client");
  server.recorder->on_meet([](const Introduction& peer) -> Met {
    return fail(Code::unsupported, "no rail in common with " + peer.name);
  });
  for (int i = 0; i < 2; ++i) {  // a refused peer may try again
    const Result<LinkId> link = client.connect(server);
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().code(), Code::unsupported);
    EXPECT_NE(link.error().message().find("refused: no rail in common with client"),
              std::string::npos)
        << link.error().message();
  }
  server.recorder->on_meet(nullptr);
  EXPECT_TRUE(client.connect(server));
  EXPECT_EQ(server.refusals(), std::vector<LinkEnd>(2, LinkEnd::unreachable));
}

TEST(Meet, OwnRefusalIsTheError) {
  Engine server("server"), client("client");
  client.recorder->on_meet(
      [](const Introduction&) -> Met { return fail(Code::fabric_failed, "fi_av_insert failed"); });
  const Result<LinkId> link = client.connect(server);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::fabric_failed);
  EXPECT_EQ(link.error().message(), "fi_av_insert failed");
  EXPECT_EQ(link.error().peer(), "server");
}

Introduction with_two_rails(const std::string& name) {
  Introduction self = introduce(name);
  self.rails.push_back(self.rails.front());
  return self;
}

/// Leaves the first rail out, once.
Recorder::OnMeet without_the_first(const char* why) {
  return [why, left = std::make_shared<bool>(false)](const Introduction&) -> Met {
    if (std::exchange(*left, true)) return {};
    return std::vector<RailOut>{{0, why}};
  };
}

void expect_out(const Introduction& who, const std::string& first, const std::string& second) {
  EXPECT_EQ(who.rails.at(0).why_out, first);
  EXPECT_EQ(who.rails.at(1).why_out, second);
}

TEST(Meet, AgainWithoutARailThatOneSideCantUse) {
  Engine server(with_two_rails("server")), client(with_two_rails("client"));
  client.recorder->on_meet(without_the_first("no slot is free"));
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link) << link.error().message();
  ASSERT_TRUE(server.recorder->wait(Event::up));
  EXPECT_EQ(client.recorder->count(Event::meet), 1u);
  EXPECT_EQ(server.recorder->count(Event::down), server.recorder->count(Event::meet) - 1);
  const auto here = client.recorder->wait(Event::meet);
  expect_out(here->self, "no slot is free", "");
  expect_out(here->peer, "", "");
  const auto there = server.recorder->wait(Event::meet, server.recorder->count(Event::meet) - 1);
  expect_out(there->self, "", "");
  expect_out(there->peer, "seen by the peer: no slot is free", "");
  server.plane->send(there->link, RevokeConfirmed{1});
  EXPECT_TRUE(client.recorder->wait(Event::received));
}

TEST(Meet, AgainWhereBothSidesLeaveRailsOut) {
  Engine server(with_two_rails("server")), client(with_two_rails("client"));
  client.recorder->on_meet(without_the_first("here"));
  server.recorder->on_meet(without_the_first("there"));
  ASSERT_TRUE(client.connect(server));
  const auto here = client.recorder->wait(Event::meet);
  ASSERT_TRUE(here);
  expect_out(here->self, "here", "");
  expect_out(here->peer, "seen by the peer: there", "");
}

TEST(Meet, OneThatLeavesOutWhatItHasNotIsRefused) {
  Engine server("server");
  Raw raw = Raw::connect(server.plane->address());
  raw.introduce_to(introduce("raw"));
  raw.send(Ready{{{1, "it has one rail"}}});
  const auto goodbye = raw.receive_kind<Goodbye>();
  ASSERT_TRUE(goodbye);
  EXPECT_NE(goodbye->reason.find("no rail 1 to leave out"), std::string::npos) << goodbye->reason;
}

TEST(Meet, HangUpTellsBoth) {
  Engine server("server"), client("client");
  const Result<LinkId> link = client.connect(server);
  ASSERT_TRUE(link);
  ASSERT_TRUE(server.recorder->wait(Event::up));
  client.plane->send(*link, RevokeConfirmed{1});
  client.plane->hang_up(*link, "enough");
  const auto here = client.recorder->wait(Event::down), there = server.recorder->wait(Event::down);
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->why->code(), Code::closed);
  EXPECT_EQ(here->how, LinkEnd::disconnected);
  EXPECT_EQ(there->how, LinkEnd::goodbye);
  EXPECT_EQ(there->why->code(), Code::peer_down);
  EXPECT_NE(there->why->message().find("said goodbye: enough"), std::string::npos)
      << there->why->message();
  EXPECT_EQ(there->why->peer(), "client");
  EXPECT_EQ(server.recorder->count(Event::received), 1u) << "what was sent before arrives";
  client.plane->send(*link, RevokeConfirmed{2});  // dropped
  const Result<LinkId> again = client.connect(server);
  ASSERT_TRUE(again);
  EXPECT_NE(*again, *link);
}

TEST(Meet, StopSaysGoodbye) {
  Engine server("server");
  {
    Engine client("client");
    ASSERT_TRUE(client.connect(server));
    ASSERT_TRUE(server.recorder->wait(Event::up));
  }
  const auto down = server.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_NE(down->why->message().find("goodbye"), std::string::npos) << down->why->message();
}

TEST(Meet, ManyPeers) {
  Engine server("server");
  std::vector<std::unique_ptr<Engine>> clients;
  for (int i = 0; i < 16; ++i)
    clients.push_back(std::make_unique<Engine>("client" + std::to_string(i), 1, quick("")));
  std::vector<std::thread> threads;
  for (auto& client : clients) threads.emplace_back([&] { EXPECT_TRUE(client->connect(server)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(server.recorder->wait(Event::up, 15));
}

// Same host.

bool may_trace() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  file >> scope;
  return scope == 0 || geteuid() == 0;
}

TEST(SameHost, InOneProcess) {
  Engine server("server"), client("client");
  ASSERT_TRUE(client.connect(server));
  for (Engine* engine : {&server, &client}) {
    const auto met = engine->recorder->wait(Event::meet);
    ASSERT_TRUE(met);
    EXPECT_TRUE(met->near.same_host) << met->near.reason;
    EXPECT_EQ(met->near.reason, "");
  }
}

TEST(SameHost, InAForkedChild) {
  if (!may_trace()) GTEST_SKIP() << "kernel.yama.ptrace_scope forbids it";
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {  // before any thread of this test was started
    close(pipe_ends[1]);
    std::array<char, 64> address{};
    if (read(pipe_ends[0], address.data(), address.size() - 1) <= 0) _exit(1);
    Engine client("child", 1, quick(""));
    if (!client.connect(std::string(address.data()))) _exit(2);
    const auto met = client.recorder->wait(Event::meet);
    _exit(met && met->near.same_host ? 0 : 3);
  }
  close(pipe_ends[0]);
  Engine server("parent");
  const std::string address = server.plane->address();
  ASSERT_EQ(write(pipe_ends[1], address.data(), address.size()),
            static_cast<ssize_t>(address.size()));
  close(pipe_ends[1]);
  const auto met = server.recorder->wait(Event::meet);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(met);
  EXPECT_TRUE(met->near.same_host) << met->near.reason;
}

TEST(SameHost, WithoutAClaim) {
  Engine server("server");
  Raw raw = Raw::connect(server.plane->address());
  raw.meet(introduce("raw"));
  const auto met = server.recorder->wait(Event::meet);
  ASSERT_TRUE(met);
  EXPECT_FALSE(met->near.same_host);
  EXPECT_NE(met->near.reason, "");
}

TEST(SameHost, WrongClaimsProveNothing) {
  const ProofPage page(5);
  const HostClaim claim = page.claim();
  EXPECT_TRUE(page.knows(prove_same_host(claim, 5)));
  for (const HostClaim& wrong :
       {HostClaim{claim.pid, 0}, HostClaim{claim.pid, 1000000}, HostClaim{1, claim.descriptor},
        HostClaim{0x7fffffff, 3}, HostClaim{0xffffffff, 0xffffffff}, HostClaim{}}) {
    const Proof proof = prove_same_host(wrong, 5);
    EXPECT_FALSE(page.knows(proof));
    EXPECT_NE(proof.reason, "");
  }
  const Proof other = prove_same_host(claim, 6);
  EXPECT_FALSE(other.proven);
  EXPECT_EQ(other.nonce, HostNonce{}) << "a nonce leaked";
  EXPECT_FALSE(page.knows(Proof{.proven = true}));
}

}  // namespace
}  // namespace weft::core::test
