// Peers that die, freeze, stop reading; and planes that stop.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <thread>

#include "control/liveness.hpp"
#include "fixture.hpp"

namespace weft::core::test {
namespace {

ControlConfig short_lived(std::string listen = "127.0.0.1:0") {
  ControlConfig config = quick(std::move(listen));
  config.heartbeat = 100ms;
  config.suspect_after = config.death_after = 1s;
  return config;
}

/// A process with an engine of its own, which connects to the address it is given.
class Child {
 public:
  /// Before the test starts any thread.
  Child() {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    process_ = fork();
    if (process_ != 0) return;
    close(pipe_[1]);
    std::array<char, 64> address{};
    if (read(pipe_[0], address.data(), address.size() - 1) <= 0) _exit(1);
    Engine client("child", 1, short_lived(""));
    if (!client.connect(std::string(address.data()))) _exit(2);
    char end = 0;
    (void)!read(pipe_[0], &end, 1);
    _exit(0);
  }
  ~Child() {
    kill(SIGKILL);
    close(pipe_[0]);
    close(pipe_[1]);
    waitpid(process_, nullptr, 0);
  }
  void connect_to(const std::string& address) {
    EXPECT_EQ(write(pipe_[1], address.data(), address.size()),
              static_cast<ssize_t>(address.size()));
  }
  void kill(int signal) { ::kill(process_, signal); }

 private:
  std::array<int, 2> pipe_{};
  pid_t process_ = -1;
};

TEST(Death, KilledProcessIsNoticedAtOnce) {
  Child child;
  ControlConfig config = quick();
  config.death_after = 600s;  // so it is not silence that tells
  Engine engine("engine", 1, config);
  child.connect_to(engine.plane->address());
  ASSERT_TRUE(engine.recorder->wait(Event::up));
  child.kill(SIGKILL);
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::peer_down);
  EXPECT_EQ(down->why->peer(), "child");
  EXPECT_EQ(down->how, LinkEnd::connection_lost);
  EXPECT_NE(down->why->message().find("without a goodbye"), std::string::npos)
      << down->why->message();
}

TEST(Death, FrozenProcessIsNoticed) {
  Child child;
  Engine engine("engine", 1, short_lived());
  child.connect_to(engine.plane->address());
  ASSERT_TRUE(engine.recorder->wait(Event::up));
  child.kill(SIGSTOP);
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::peer_down);
  EXPECT_EQ(down->how, LinkEnd::silent);
  EXPECT_NE(down->why->message().find("nothing was heard"), std::string::npos)
      << down->why->message();
}

TEST(Death, LateThreadsAreToldAndNoDeath) {
  std::atomic<bool> alive{true};
  ControlConfig config = short_lived("");
  config.progress_alive = [&] { return alive.load(); };
  Engine engine("engine", 1, short_lived()), client("client", 1, config);
  ASSERT_TRUE(client.connect(engine));
  alive = false;
  const auto late = engine.recorder->wait(Event::changed);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->health, Health::slow);
  EXPECT_FALSE(engine.recorder->wait(Event::down, 0, Deadline::in(2 * config.death_after)))
      << "its process lives";
  EXPECT_EQ(engine.recorder->count(Event::changed), 1U) << "told once";
  alive = true;
  const auto again = engine.recorder->wait(Event::changed, 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->health, Health::up);
}

TEST(Death, SilenceIsToldLongBeforeDeath) {
  Child child;
  ControlConfig config = short_lived();
  config.suspect_after = 500ms;
  config.death_after = 600s;
  Engine engine("engine", 1, config);
  child.connect_to(engine.plane->address());
  ASSERT_TRUE(engine.recorder->wait(Event::up));
  child.kill(SIGSTOP);
  const auto silent = engine.recorder->wait(Event::changed);
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->health, Health::silent);
  child.kill(SIGCONT);
  const auto again = engine.recorder->wait(Event::changed, 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->health, Health::up);
  EXPECT_EQ(engine.recorder->count(Event::down), 0U);
}

TEST(Death, VerdictsComeOnTime) {
  const Clock::time_point start{};
  Pulse pulse;
  pulse.start(start);
  EXPECT_FALSE(pulse.verdict(start + 999ms, 1s));
  EXPECT_TRUE(pulse.verdict(start + 1s, 1s));
  EXPECT_EQ(pulse.due(1s), start + 1s);
  pulse.heard(start + 500ms);
  EXPECT_EQ(pulse.due(1s), start + 1500ms);
  EXPECT_FALSE(pulse.verdict(start + 1499ms, 1s));
  pulse.forgive(2s);
  EXPECT_FALSE(pulse.verdict(start + 3499ms, 1s));
  EXPECT_TRUE(pulse.verdict(start + 3500ms, 1s));
}

TEST(Death, PeerThatDoesNotReadOverflowsAndIsDropped) {
  Engine engine("engine", 1, quick(), {.queue_bound = 4 << 20});
  Raw raw = Raw::connect(engine.plane->address());
  raw.meet(introduce("raw"));
  const auto up = engine.recorder->wait(Event::up);
  ASSERT_TRUE(up);
  for (int i = 0; i < 64; ++i)  // more than the queue and the sockets hold
    engine.plane->send(up->link, LookupReply{1, Blob(limits::grant)});
  const auto down = engine.recorder->wait(Event::down);
  ASSERT_TRUE(down);
  EXPECT_EQ(down->why->code(), Code::peer_down);
  EXPECT_NE(down->why->message().find("does not read"), std::string::npos) << down->why->message();
}

// Stopping.

TEST(Stop, WhileConnecting) {
  Raw silent = Raw::listen();
  Engine engine("engine");
  std::thread connecting([&] {
    const Result<LinkId> link = engine.connect(silent.address());
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().code(), Code::closed) << link.error().message();
  });
  Raw accepted = silent.accept();
  ASSERT_FALSE(accepted.receive().empty());
  EXPECT_TRUE(engine.plane->stop(soon()));
  connecting.join();
  const Result<LinkId> later = engine.connect(silent.address());
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), Code::closed);
}

TEST(Stop, AtOnceStillReportsDown) {
  Engine engine("engine"), client("client");
  ASSERT_TRUE(client.connect(engine));
  // It may come too late, on a loaded machine, to see its threads end; but it has told before.
  (void)client.plane->stop(Deadline::now());
  EXPECT_TRUE(client.recorder->wait(Event::down));
}

TEST(Stop, WhileMeeting) {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, released = false;
  Engine server("server");
  auto client = std::make_unique<Engine>("client");
  server.recorder->on_meet([&](const Introduction&) -> Met {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_until(lock, soon().when(), [&] { return released; }));
    return {};
  });
  std::thread connecting([&] { EXPECT_FALSE(client->connect(server)); });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_until(lock, soon().when(), [&] { return entered; }));
  }
  // Bounded though meet() does not return.
  const Result<void> stopped = server.plane->stop(Deadline::in(50ms));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::timed_out);
  connecting.join();  // it was told goodbye
  {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  // The call that did not return in time ends by itself; nothing is reported after it.
  ASSERT_TRUE(server.recorder->wait(Event::meet));
  EXPECT_EQ(server.recorder->count(Event::down), 0u);
  server.plane = nullptr;
}

TEST(Stop, WaitsForAMeetingThatEnds) {
  Engine server("server");
  std::atomic<bool> entered{false};
  server.recorder->on_meet([&](const Introduction&) -> Met {
    entered = true;
    entered.notify_all();
    std::this_thread::sleep_for(100ms);
    return {};
  });
  Engine client("client");
  std::thread connecting([&] { (void)client.connect(server); });
  entered.wait(false);
  EXPECT_TRUE(server.plane->stop(soon()));
  server.recorder->expect_all_down();
  connecting.join();
}

TEST(Stop, AbandonedConnectsAreCleanedUp) {
  Raw silent = Raw::listen();
  Engine engine("engine");
  const Result<LinkId> link = engine.plane->connect(silent.address(), Deadline::in(2s));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::timed_out);
  EXPECT_NE(link.error().message().find("waiting for its first word"), std::string::npos)
      << link.error().message();
  Raw accepted = silent.accept();
  accepted.receive_all();  // ends: the engine has closed it
}

TEST(Stop, AbandonedMeetingIsUndone) {
  Engine server("server");
  std::atomic<bool> released{false};
  server.recorder->on_meet([&](const Introduction&) -> Met {
    released.wait(false);
    return {};
  });
  Engine client("client");
  const Result<LinkId> link = client.plane->connect(server.plane->address(), Deadline::in(2s));
  // Long enough for this side's own meeting, which is then undone.
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::timed_out);
  ASSERT_TRUE(client.recorder->wait(Event::down));
  released = true;
  released.notify_all();
  ASSERT_TRUE(server.recorder->wait(Event::down));
  server.recorder->on_meet(nullptr);
  EXPECT_TRUE(client.connect(server));
}

TEST(Stop, NothingIsLeftOpen) {
  const auto open_files = [] {
    std::map<int, int> flags;
    for (int descriptor = 0; descriptor < 1024; ++descriptor)
      if (const int got = fcntl(descriptor, F_GETFD); got >= 0) flags[descriptor] = got;
    return flags;
  };
  const std::map<int, int> before = open_files();
  for (int i = 0; i < 20; ++i) {
    Engine one("one"), two("two");
    ASSERT_TRUE(one.connect(two));
    for (const auto& [descriptor, flags] : open_files())
      EXPECT_TRUE(before.contains(descriptor) || flags & FD_CLOEXEC) << descriptor;
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace weft::core::test
