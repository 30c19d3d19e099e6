// More than one connection between the same two engines.
#include <barrier>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fixture.hpp"
#include "warnings.hpp"

namespace weft::core::test {
namespace {

using weft::test::Warnings;

TEST(Collision, BothConnectAtOnce) {
  for (int i = 0; i < 100; ++i) {
    Engine one("one"), two("two");
    std::barrier start(2);
    Result<LinkId> from_one = fail(Code::internal, ""), from_two = from_one;
    std::thread thread([&] {
      start.arrive_and_wait();
      from_two = two.connect(one);
    });
    start.arrive_and_wait();
    from_one = one.connect(two);
    thread.join();
    ASSERT_TRUE(from_one) << from_one.error().message();
    ASSERT_TRUE(from_two) << from_two.error().message();
    EXPECT_EQ(one.recorder->count(Event::meet), 1u);
    EXPECT_EQ(two.recorder->count(Event::meet), 1u);
    EXPECT_EQ(one.recorder->count(Event::down) + two.recorder->count(Event::down), 0u);
    const auto here = one.recorder->wait(Event::meet), there = two.recorder->wait(Event::meet);
    EXPECT_EQ(here->link, *from_one);
    EXPECT_EQ(there->link, *from_two);
    EXPECT_EQ(here->self.token, there->peer.token) << "each kept another connection";
    EXPECT_EQ(here->peer.token, there->self.token);
    two.plane->send(*from_two, RevokeConfirmed{9});
    EXPECT_TRUE(one.recorder->wait(Event::received));
  }
}

TEST(Collision, ManyCallsGiveOneLink) {
  Engine one("one"), two("two");
  std::vector<Result<LinkId>> links(16, fail(Code::internal, ""));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < links.size(); ++i)
    threads.emplace_back([&, i] { links[i] = i % 2 ? one.connect(two) : two.connect(one); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < links.size(); ++i) {
    ASSERT_TRUE(links[i]) << links[i].error().message();
    EXPECT_EQ(*links[i], *links[i % 2]);
  }
  EXPECT_EQ(one.recorder->count(Event::meet), 1u);
  EXPECT_EQ(two.recorder->count(Event::meet), 1u);
}

TEST(Collision, RepeatedConnectReturnsTheLink) {
  Engine one("one"), two("two");
  const Result<LinkId> first = one.connect(two);
  ASSERT_TRUE(first);
  EXPECT_EQ(one.connect(two).value(), *first);
  const auto up = two.recorder->wait(Event::up);
  ASSERT_TRUE(up);
  EXPECT_EQ(two.connect(one).value(), up->link);
  EXPECT_EQ(one.recorder->count(Event::meet), 1u);
  EXPECT_EQ(two.recorder->count(Event::meet), 1u);
  EXPECT_TRUE(one.troubles().empty()) << one.troubles()[0].message();
  EXPECT_TRUE(two.troubles().empty()) << two.troubles()[0].message();
}

TEST(Collision, ReconnectAtOnceAfterHangUp) {
  Engine one("one"), two("two");
  for (int i = 0; i < 20; ++i)
    for (auto [from, to] : {std::pair(&one, &two), std::pair(&two, &one)}) {
      const Result<LinkId> link = from->connect(*to);
      ASSERT_TRUE(link) << link.error().message();
      from->plane->hang_up(*link, "again");
    }
}

// The raw side forgets its first connection without closing it.
void expect_second_connection_to_win(const Introduction& self,
                                     const std::function<void(Raw&)>& meet_again) {
  Engine engine("middle");
  Raw lost = Raw::connect(engine.plane->address());
  lost.meet(self);
  Raw again = Raw::connect(engine.plane->address());
  meet_again(again);
  EXPECT_TRUE(lost.receive_kind<Goodbye>());
  ASSERT_TRUE(engine.recorder->wait(Event::up, 1));
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::peer_down);
  EXPECT_EQ(down->how, LinkEnd::replaced);
  EXPECT_NE(down->why->message().find("gave up this connection"), std::string::npos)
      << down->why->message();
}

TEST(Collision, ChooserLostTheLink) {
  const Introduction self = introduce("a-chooser");
  expect_second_connection_to_win(self, [&](Raw& again) { again.meet(self); });
}

TEST(Collision, FollowerLostTheLink) {
  const Introduction self = introduce("z-follower");
  expect_second_connection_to_win(self, [&](Raw& again) {
    again.send_preamble();
    again.receive_preamble();
    again.send(Hello{self, {}});
    again.send(Proof{});
    ASSERT_TRUE(again.receive_kind<Duplicate>());
    again.send(Lost{});
    ASSERT_TRUE(again.receive_kind<Choice>());
    again.send(Ready{});
    ASSERT_TRUE(again.receive_kind<Ready>());
  });
}

TEST(Collision, WithOneself) {
  Engine engine("narcissus");
  const Result<LinkId> link = engine.connect(engine);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::invalid_argument);
  EXPECT_NE(link.error().message().find("is this engine ('narcissus') itself"), std::string::npos)
      << link.error().message();
  EXPECT_EQ(engine.recorder->count(Event::meet), 0u);
  EXPECT_TRUE(engine.wait_for_trouble("itself"));
  EXPECT_EQ(engine.refusals(), std::vector<LinkEnd>(1, LinkEnd::itself));
}

TEST(Collision, NewIncarnationReplacesTheOld) {
  for (const char* name : {"a", "z"}) {  // one chooses, the other follows
    Engine server("m"), old(name, 7), fresh(name, 3);
    ASSERT_TRUE(old.connect(server));
    ASSERT_TRUE(fresh.connect(server));
    const auto down = server.recorder->wait(Event::down);
    ASSERT_TRUE(down);
    EXPECT_EQ(down->why->code(), Code::stale);
    EXPECT_EQ(down->how, LinkEnd::restarted);
    EXPECT_NE(down->why->message().find("replaced by a new incarnation"), std::string::npos);
    // The old one went down before the new one was met.
    std::optional<std::uint64_t> up;
    for (const Event& event : server.recorder->events()) {
      if (event.kind == Event::meet && event.peer.name == name) {
        EXPECT_FALSE(up);
        up = event.peer.incarnation;
      }
      if (event.kind == Event::down) up.reset();
    }
    EXPECT_EQ(up, 3u);
    EXPECT_TRUE(old.recorder->wait(Event::down));
    ASSERT_TRUE(server.connect(fresh));
  }
}

TEST(Collision, TwoEnginesOfOneNameAreToldOf) {
  for (const char* name : {"a", "z"}) {  // one chooses, the other follows
    Warnings warnings;
    Engine server("m"), one(name, 7), other(name, 3);
    ASSERT_TRUE(one.connect(server));
    ASSERT_TRUE(other.connect(server));
    EXPECT_TRUE(warnings.lines().empty()) << "it may have been restarted";
    for (std::size_t round = 0; round < 3; ++round) {
      ASSERT_TRUE(one.recorder->wait(Event::down, round));
      ASSERT_TRUE(one.connect(server));
      ASSERT_TRUE(other.recorder->wait(Event::down, round));
      ASSERT_TRUE(other.connect(server));
    }
    const auto lines = warnings.lines();
    ASSERT_EQ(lines.size(), 1U) << "once a minute";
    const std::string& line = lines.front();
    EXPECT_NE(line.find("replaced 2 times within a minute"), std::string::npos) << line;
    EXPECT_NE(other.recorder->wait(Event::down)->why->to_string().find("same name"),
              std::string::npos)
        << other.recorder->wait(Event::down)->why->to_string();
  }
}

TEST(Collision, AnEngineThatIsRestartedOverAndOverHasNoNamesake) {
  Warnings warnings;
  Engine server("m");
  std::vector<std::unique_ptr<Engine>> all;
  for (std::uint64_t incarnation = 1; incarnation <= 5; ++incarnation) {
    all.push_back(std::make_unique<Engine>("a", incarnation));
    ASSERT_TRUE(all.back()->connect(server));
  }
  EXPECT_TRUE(warnings.lines().empty()) << warnings.lines().front();
}

TEST(Collision, NewIncarnationWhileTheOldIsBeingMet) {
  Engine server("m");
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, released = false;
  server.recorder->on_meet([&](const Introduction& peer) -> Met {
    if (peer.incarnation != 1) return {};
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_until(lock, soon().when(), [&] { return released; }));
    return {};
  });
  Engine old("peer", 1, quick("")), fresh("peer", 2, quick(""));
  std::thread first([&] { EXPECT_FALSE(old.connect(server)); });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_until(lock, soon().when(), [&] { return entered; }));
  }
  std::thread second([&] { EXPECT_TRUE(fresh.connect(server)); });
  first.join();  // told when it is replaced, though its meeting has not ended
  {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  second.join();
  ASSERT_TRUE(server.recorder->wait(Event::up));
  const std::vector<Event> events = server.recorder->events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events[0].kind, Event::meet);
  EXPECT_EQ(events[1].kind, Event::down);
  EXPECT_EQ(events[2].kind, Event::meet);
  EXPECT_EQ(events[2].peer.incarnation, 2u);
  EXPECT_EQ(events[3].kind, Event::up);
}

}  // namespace
}  // namespace weft::core::test
