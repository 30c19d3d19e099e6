// Engines of one host that see less of each other than two processes do by default: as in two pods.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "engines.hpp"
#include "folder.hpp"
#include "namespaces.hpp"
#include "process.hpp"
#include "warnings.hpp"

namespace weft::test {
namespace {

constexpr std::size_t board_bytes = 3'000'001;

Config config_of_host(const std::string& folder) {
  Config config = config_for("shm");
  config.providers = {"shm", "tcp"};
  config.host_dir = folder;
  return config;
}

std::set<std::string> providers_of(const Report& report) {
  std::set<std::string> providers;
  for (const Report::RailShare& share : report.rails)
    providers.insert(share.rail.substr(0, share.rail.find(':')));
  return providers;
}

Memory memory_of(const std::string& kind) {
  return kind == "shared" ? Memory::shared(board_bytes) : Memory::own(board_bytes);
}

/// Publishes memory, and does what it is asked for: "fill SEED", "check SEED", and "read SEED",
/// which fills its memory with that of the engine which asks, and compares.
int serve(Line& parent, const Config& config, const std::string& kind) {
  Engine engine = must(Engine::open(config));
  Segment segment = must(engine.add(memory_of(kind)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  std::optional<Peer> peer;
  while (true) {
    std::istringstream words(parent.hear(soon()));
    std::string verb;
    std::uint64_t seed = 0;
    words >> verb >> seed;
    if (verb == "end") return 0;
    if (verb == "fill") fill(bytes_of(segment), seed);
    if (verb == "read") {
      if (!peer) peer = must(engine.accept(soon()));
      const Remote there = must(peer->lookup("memory", soon()));
      const Pair all[] = {{0, 0, board_bytes}};
      must(must(engine.read(segment, there, all)).wait(soon()));
    }
    const auto right =
        verb == "fill" ? testing::AssertionSuccess() : holds(bytes_of(segment), seed);
    parent.say(right ? "yes" : right.message());
  }
}

/// Namespaces, kind of memory, host_dir.
WEFT_ROLE(pod) {
  const int status = run_apart(std::stoi(arguments.at(0)), [&] {
    return serve(parent, config_of_host(arguments.size() > 2 ? arguments.at(2) : ""),
                 arguments.at(1));
  });
  if (status == refused_apart) parent.say("refused");
  _exit(status);  // A leak checker's helper would start in the other namespace.
}

/// Without a /proc.
WEFT_ROLE(blind) {
  const int status = run_apart(CLONE_NEWUSER, [&] {
    if (mount("none", "/proc", "tmpfs", 0, nullptr) != 0) return refused_apart;
    return serve(parent, config_of_host(""), "shared");
  });
  if (status == refused_apart) parent.say("refused");
  _exit(status);  // A leak checker's helper would start in the other namespace.
}

/// As another user of the host.
WEFT_ROLE(tenant) {
  constexpr uid_t other = 12345;
  if (setgid(other) != 0 || setuid(other) != 0) {
    parent.say("refused");
    return refused_apart;
  }
  return serve(parent, config_of_host(""), arguments.at(0));
}

std::vector<std::string> pod(int namespaces, const std::string& kind,
                             const std::string& folder = {}) {
  return {std::to_string(namespaces), kind, folder};
}

std::vector<std::string> files_in(const Folder& folder) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder.at(".")))
    names.push_back(each.path().filename());
  return names;
}

class Hosts : public testing::Test {
 protected:
  static constexpr int others = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC;

  /// Begins with `where`, the other's address; false if the system refused it what it needs.
  bool meet(Child& other, const Config& config = config_of_host("")) {
    const std::string address = other.hear();
    if (address == "refused") return false;
    engine.emplace(must(Engine::open(config)));
    local.emplace(must(engine->add(Memory::own(board_bytes))));
    board.emplace(must(engine->add(Memory::shared(board_bytes))));
    grant.emplace(must(board->grant({}, Rights::read_write)));
    must(engine->publish("memory", *grant));
    peer.emplace(must(engine->connect(address, soon())));
    remote.emplace(must(peer->lookup("memory", soon())));
    return true;
  }
  Report move(bool writes) {
    const Pair all[] = {{0, 0, board_bytes}};
    Transfer transfer =
        must(writes ? engine->write(*local, *remote, all) : engine->read(*local, *remote, all));
    must(transfer.wait(soon()));
    return transfer.report();
  }
  /// Both ways, and by either side.
  void expect_moved(Child& other, const std::string& provider) {
    fill(bytes_of(*local), 1);
    EXPECT_EQ(providers_of(report = move(true)), std::set{provider});
    EXPECT_EQ(other.ask("check 1"), "yes");
    other.ask("fill 2");
    EXPECT_EQ(providers_of(move(false)), std::set{provider});
    EXPECT_TRUE(holds(bytes_of(*local), 2));
    fill(bytes_of(*board), 3);
    EXPECT_EQ(other.ask("read 3"), "yes");
  }
  static void expect_end(Child& other) {
    other.say("end");
    EXPECT_EQ(other.join(), 0);
  }

  Report report;  // of the write
  std::optional<Engine> engine;
  std::optional<Segment> local, board;
  std::optional<Grant> grant;
  std::optional<Peer> peer;
  std::optional<Remote> remote;
};

#define SKIP_WITHOUT(other, ...)                     \
  if (!meet(other __VA_OPT__(, ) __VA_ARGS__)) {     \
    other.join();                                    \
    GTEST_SKIP() << "no namespaces, or other users"; \
  }

TEST_F(Hosts, OtherPidNamespaceMapsSharedMemory) {
  const Warnings warnings;
  Child other("pod", pod(others, "shared"));
  SKIP_WITHOUT(other);
  EXPECT_TRUE(peer->same_host()) << peer->route_reason();
  EXPECT_EQ(peer->fallback(), "");
  expect_moved(other, "shm");
  EXPECT_EQ(report.fallback, "");
  EXPECT_EQ(report.transport, TransportKind::one_sided);
  expect_end(other);
  EXPECT_EQ(warnings.lines(), std::vector<std::string>{});
}

TEST_F(Hosts, OtherPidNamespaceIsSentMemoryThatCantBeMapped) {
  Child other("pod", pod(others, "own"));
  SKIP_WITHOUT(other);
  EXPECT_TRUE(peer->same_host()) << peer->route_reason();
  expect_moved(other, "shm");
  EXPECT_EQ(report.transport, TransportKind::bounce);
  EXPECT_NE(report.fallback.find("Memory::shared"), std::string::npos) << report.fallback;
  const Path path = must(engine->explain(*local, *remote, Direction::write));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  TransferOptions one_sided;
  one_sided.transport = TransportKind::one_sided;
  const Pair all[] = {{0, 0, board_bytes}};
  EXPECT_TRUE(fails_with(engine->write(*local, *remote, all, one_sided), Code::unsupported));
  expect_end(other);
}

TEST_F(Hosts, AHiddenProcIsAFallback) {
  Child other("blind");
  SKIP_WITHOUT(other);
  EXPECT_FALSE(peer->same_host());
  EXPECT_NE(peer->fallback().find("/proc/self/fd"), std::string::npos) << peer->route_reason();
  expect_moved(other, "tcp");
  expect_end(other);
}

TEST_F(Hosts, OneThatWasKilledGoesDown) {
  Child other("pod", pod(others, "shared"));
  SKIP_WITHOUT(other);
  expect_moved(other, "shm");
  other.kill();
  const Deadline deadline = soon();
  while (peer->up() && !deadline.passed()) std::this_thread::yield();
  EXPECT_FALSE(peer->up());
}

TEST_F(Hosts, AnotherUserIsAFallback) {
  const Warnings warnings;
  Child other("tenant", {"shared"});
  SKIP_WITHOUT(other);
  EXPECT_FALSE(peer->same_host());
  EXPECT_NE(peer->fallback().find("run both as one user"), std::string::npos) << peer->fallback();
  EXPECT_GT(warnings.about("run both as one user"), 0) << testing::PrintToString(warnings.lines());
  expect_moved(other, "tcp");
  EXPECT_EQ(report.fallback, peer->fallback());
  expect_end(other);
}

TEST_F(Hosts, SocketsOfKilledEnginesAreRemoved) {
  const Folder folder;
  Child other("pod", pod(others, "shared", folder.at(".")));
  SKIP_WITHOUT(other, config_of_host(folder.at(".")));
  EXPECT_EQ(files_in(folder).size(), 2U);
  other.kill();
  // The kernel closes the socket of a process in a namespace of its own a little later.
  const Deadline deadline = soon();
  std::size_t left = 0;
  do {
    Engine next = must(Engine::open(config_of_host(folder.at("."))));
    left = files_in(folder).size();
    must(next.close(soon()));
  } while (left > 2 && !deadline.passed());
  EXPECT_EQ(left, 2U) << "this engine's, and that of the next";
  must(engine->close(soon()));
  EXPECT_TRUE(files_in(folder).empty());
}

TEST(HostDir, ThatCantBeUsedIsAnError) {
  for (const std::string& folder : {std::string("/no/such/folder"), std::string(200, 'x')}) {
    const auto engine = Engine::open(config_of_host(folder));
    ASSERT_TRUE(fails_with(engine, Code::invalid_argument));
    EXPECT_NE(engine.error().message().find("host_dir"), std::string::npos);
  }
}

bool system_does(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

/// Interfaces are set up by the kernel in the background: libfabric sees those that run.
bool comes_up(const std::string& interface) {
  const std::string running = "ip -o link show " + interface + " | grep -q 'state UP'";
  for (const Deadline deadline = soon(); !deadline.passed(); std::this_thread::sleep_for(10ms))
    if (system_does(running)) return true;
  return false;
}

Config config_on(const std::string& address, const std::string& folder) {
  Config config = config_of_host(folder);
  config.listen = address + ":0";
  config.allow_unauthenticated_network = true;
  return config;
}

/// Two engines on two ends of a network cable. Says what it finds: the fallback, or "" and the
/// provider.
int meet_over_cable(Line& parent, const std::string& folder) {
  int ready[2], cable[2], said[2], heard[2];
  for (int* ends : {ready, cable, said, heard})
    if (pipe(ends) != 0) return 1;
  if (!system_does("ip link set lo up")) return refused_apart;
  const pid_t far = fork();
  if (far == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(refused_apart);
    Line(ready[0], ready[1]).say("unshared");
    _exit(run_apart(CLONE_NEWPID, [&] {
      Line(cable[0], -1).hear(soon());
      if (!system_does("ip link set lo up && ip addr add 10.9.0.2/24 dev far && "
                       "ip link set far up") ||
          !comes_up("far"))
        return refused_apart;
      Line line(heard[0], said[1]);
      return serve(line, config_on("10.9.0.2", folder), "shared");
    }));
  }
  Line(ready[0], -1).hear(soon());
  if (!system_does("ip link add near type veth peer name far netns " + std::to_string(far) +
                   " && ip addr add 10.9.0.1/24 dev near && ip link set near up"))
    return refused_apart;
  Line(-1, cable[1]).say("plugged");
  if (!comes_up("near")) return refused_apart;
  Line line(said[0], heard[1]);
  const std::string address = line.hear(soon());
  {
    Engine engine = must(Engine::open(config_on("10.9.0.1", folder)));
    Segment local = must(engine.add(Memory::own(board_bytes)));
    Peer peer = must(engine.connect(address, soon()));
    Remote remote = must(peer.lookup("memory", soon()));
    fill(bytes_of(local), 4);
    const Pair all[] = {{0, 0, board_bytes}};
    Transfer transfer = must(engine.write(local, remote, all));
    must(transfer.wait(soon()));
    parent.say(peer.fallback());
    parent.say(*providers_of(transfer.report()).begin());
    line.say("check 4");
    parent.say(line.hear(soon()));
    line.say("end");
  }
  return 0;
}

WEFT_ROLE(cable) {
  const int status = run_apart(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET, [&] {
    return meet_over_cable(parent, arguments.empty() ? "" : arguments.at(0));
  });
  if (status == refused_apart) parent.say("refused");
  _exit(status);  // A leak checker's helper would start in the other namespace.
}

/// The addresses of one end of two cables: for the control connection, and for rails.
Config config_behind_wall(int host) {
  Config config = config_for("tcp");
  config.listen = "10.9.0." + std::to_string(host) + ":0";
  config.rail_address = "10.8.0." + std::to_string(host);
  config.allow_unauthenticated_network = true;
  config.suspect_after = 1s;
  return config;
}

/// Plugs the ends of two cables in, of which the second carries nothing: what is sent there goes to
/// nobody, as where a firewall drops it.
bool plug_in(const std::string& end, int host) {
  const std::string other = std::to_string(3 - host), self = std::to_string(host);
  return system_does("ip link set lo up && ip addr add 10.9.0." + self + "/24 dev " + end +
                     "9 && ip addr add 10.8.0." + self + "/24 dev " + end + "8 && ip link set " +
                     end + "9 up && ip link set " + end + "8 up && ip neigh replace 10.8.0." +
                     other + " lladdr 02:00:00:00:00:99 dev " + end + "8 nud permanent");
}

/// Two engines that meet, and whose rails are blocked. Says how a write ended, how long it took in
/// milliseconds, and the message that came.
int meet_behind_wall(Line& parent) {
  int ready[2], cable[2], said[2];
  for (int* ends : {ready, cable, said})
    if (pipe(ends) != 0) return 1;
  const pid_t far = fork();
  if (far == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(refused_apart);
    Line(ready[0], ready[1]).say("unshared");
    _exit(run_apart(CLONE_NEWPID, [&] {
      Line(cable[0], -1).hear(soon());
      if (!plug_in("far", 2) || !comes_up("far9") || !comes_up("far8")) return refused_apart;
      Engine engine = must(Engine::open(config_behind_wall(2)));
      Segment memory = must(engine.add(Memory::own(board_bytes)));
      const Grant grant = must(memory.grant({}, Rights::read_write));
      must(engine.publish("memory", grant));
      Line line(-1, said[1]);
      line.say(engine.address());
      const Peer peer = must(engine.accept(soon()));
      const Blob bytes = must(peer.recv(1, ~std::uint64_t{0}, soon())).bytes;
      line.say(std::to_string(bytes.size()));
      return 0;
    }));
  }
  Line(ready[0], -1).hear(soon());
  for (const std::string net : {"8", "9"})
    if (!system_does("ip link add near" + net + " type veth peer name far" + net + " netns " +
                     std::to_string(far)))
      return refused_apart;
  if (!plug_in("near", 1)) return refused_apart;
  Line(-1, cable[1]).say("plugged");
  if (!comes_up("near9") || !comes_up("near8")) return refused_apart;
  Line line(said[0], -1);
  Engine engine = must(Engine::open(config_behind_wall(1)));
  const Segment local = must(engine.add(Memory::own(board_bytes)));
  Peer peer = must(engine.connect(line.hear(soon()), soon()));
  const Remote remote = must(peer.lookup("memory", soon()));
  const Pair all[] = {{0, 0, board_bytes}};
  TransferOptions options;
  options.deadline = Deadline::in(4s);
  Transfer transfer = must(engine.write(local, remote, all, options));
  const auto ended = transfer.wait(soon());
  parent.say(ended ? "it went through" : ended.error().to_string());
  parent.say(peer.up() ? "up" : "down");
  must(peer.send(1, Blob(77), soon()));
  parent.say(line.hear(soon()));
  return 0;
}

WEFT_ROLE(wall) {
  const int status = run_apart(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
                               [&] { return meet_behind_wall(parent); });
  if (status == refused_apart) parent.say("refused");
  _exit(status);  // A leak checker's helper would start in the other namespace.
}

TEST(Firewall, ThatDropsARailsPortIsNamedAndStopsNoMessage) {
  Child both("wall");
  const std::string error = both.hear();
  if (error == "refused") {
    both.join();
    GTEST_SKIP() << "no namespaces, or no `ip`";
  }
  EXPECT_TRUE(error.starts_with("timed_out")) << error;
  EXPECT_NE(error.find("has had no room for it (does a firewall block"), std::string::npos)
      << error;
  EXPECT_EQ(both.hear(), "up");
  EXPECT_EQ(both.hear(), "77");
  EXPECT_EQ(both.join(), 0);
}

TEST(OtherNetworkNamespace, IsAFallbackThatTellsTheSetting) {
  Child both("cable");
  const std::string fallback = both.hear();
  if (fallback == "refused") {
    both.join();
    GTEST_SKIP() << "no namespaces, or no `ip`";
  }
  EXPECT_NE(fallback.find("WEFT_HOST_DIR"), std::string::npos) << fallback;
  EXPECT_EQ(both.hear(), "tcp");
  EXPECT_EQ(both.hear(), "yes");
  EXPECT_EQ(both.join(), 0);
}

TEST(OtherNetworkNamespace, SharesMemoryThroughAFolder) {
  const Folder folder;
  Child both("cable", {folder.at(".")});
  const std::string fallback = both.hear();
  if (fallback == "refused") {
    both.join();
    GTEST_SKIP() << "no namespaces, or no `ip`";
  }
  EXPECT_EQ(fallback, "");
  EXPECT_EQ(both.hear(), "shm");
  EXPECT_EQ(both.hear(), "yes");
  EXPECT_EQ(both.join(), 0);
}

}  // namespace
}  // namespace weft::test
