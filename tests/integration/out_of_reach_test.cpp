// Rails of one side that do not reach the other: both leave them out, and say why.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "engines.hpp"
#include "forwarding.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

constexpr std::size_t bytes = 300'007;
constexpr const char* reason = "no slot is free";
const std::vector<Pair> everything = {{0, 0, bytes}};

/// Reaches nobody, if it is one of those that `refuses` counts.
template <bool (*refuses)(const Capability&)>
class Unreachable final : public ForwardingEndpoint {
 public:
  explicit Unreachable(std::unique_ptr<providers::Endpoint> real)
      : ForwardingEndpoint(std::move(real)), refuses_(refuses(capability())) {}
  Result<providers::FabricAddress> insert(Bytes address) override {
    return insert_of(address, nullptr);
  }
  Result<providers::FabricAddress> insert_of(
      Bytes address, const std::shared_ptr<const core::HostProcess>& process) override {
    if (refuses_) return fail(Code::unavailable, reason);
    return process ? inner().insert_of(address, process) : inner().insert(address);
  }

 private:
  const bool refuses_;
};

bool is_shared_memory(const Capability& record) {
  return record.same_host_only;
}
bool is_first(const Capability&) {
  static int count = 0;
  return count++ == 0;
}
bool is_any(const Capability&) {
  return true;
}

Config on_this_host(const std::string& name) {
  Config config = config_for("shm");
  config.name = name;
  config.providers = {"shm", "tcp"};
  return config;
}

/// Both directions from both ends, and messages both ways.
void expect_serves(Couple& pair) {
  Board board(pair, bytes, bytes);
  board.expect_moved(Direction::write, everything);
  board.repaint();
  board.expect_moved(Direction::read, everything);
  board.repaint();
  board.expect_written_back({0, 0, bytes});
  const Blob words(100, std::byte{7});
  must(pair.to_b.send(1, words, soon()));
  EXPECT_EQ(must(pair.to_a.recv(1, ~std::uint64_t{0}, soon())).bytes, words);
  must(pair.to_a.send(2, words, soon()));
  EXPECT_EQ(must(pair.to_b.recv(2, ~std::uint64_t{0}, soon())).bytes, words);
}

Couple meet(Engine a, Engine b) {
  auto [to_b, to_a] = acquaint(a, b);
  return {std::move(a), std::move(b), std::move(to_b), std::move(to_a)};
}

void expect_sockets(const Peer& peer, const std::string& why) {
  for (const std::string& rail : peer.rails()) EXPECT_TRUE(rail.starts_with("tcp")) << rail;
  EXPECT_NE(peer.fallback().find("shm: " + why), std::string::npos) << peer.fallback();
}

TEST(OutOfReach, SocketsTakeThePlaceOfSharedMemory) {
  // Whichever side chooses the rails, and whichever has the trouble.
  for (const bool a_chooses : {true, false})
    for (const bool by_a : {true, false}) {
      const Config first = on_this_host(a_chooses ? "a" : "z"), second = on_this_host("m");
      using Troubled = Unreachable<is_shared_memory>;
      Couple pair = meet(must(by_a ? open_wrapped<Troubled>(first) : Engine::open(first)),
                         must(by_a ? Engine::open(second) : open_wrapped<Troubled>(second)));
      const std::string there = std::string("seen by the peer: ") + reason;
      expect_sockets(pair.to_b, by_a ? reason : there);
      expect_sockets(pair.to_a, by_a ? there : reason);
      expect_serves(pair);
    }
}

TEST(OutOfReach, OneOfTwoRailsIsLeftOut) {
  Couple pair = meet(must(open_wrapped<Unreachable<is_first>>(config_for("tcp", 2))),
                     must(Engine::open(config_for("tcp", 2))));
  EXPECT_EQ(pair.to_b.rails().size(), 1U);
  EXPECT_EQ(pair.to_a.rails().size(), 2U);
  EXPECT_NE(pair.to_b.fallback().find(reason), std::string::npos) << pair.to_b.fallback();
  expect_serves(pair);
}

TEST(OutOfReach, ThePeerIsRefusedWhereNoRailIsLeft) {
  Engine a = must(open_wrapped<Unreachable<is_any>>(on_this_host("a"))),
         b = must(Engine::open(on_this_host("b")));
  const auto peer = a.connect(b.address(), soon());
  ASSERT_TRUE(fails_with(peer, Code::unavailable));
  const std::string& message = peer.error().message();
  // Whichever of the two says it first.
  EXPECT_NE(message.find("not shm: "), std::string::npos) << message;
  EXPECT_NE(message.find(reason, message.find(reason) + 1), std::string::npos)
      << "of tcp: " << message;
}

void allow_descriptors(rlim_t count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = count;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit");
}

/// Meets the engine at that address with ever more descriptors, and says what each time became of
/// it: "refused", or the rail and the fallback, or what went wrong with the bytes.
WEFT_ROLE(scarce) {
  constexpr rlim_t most = 24;
  Engine engine = must(Engine::open(on_this_host("scarce")));
  const Segment local = must(engine.add(Memory::own(bytes)));
  rlim_t used = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor)
    if (fcntl(descriptor, F_GETFD) >= 0) used = static_cast<rlim_t>(descriptor) + 1;
  allow_descriptors(used);
  while (dup(STDIN_FILENO) >= 0) {  // those between
  }
  for (rlim_t more = 0; more <= most; ++more) {
    allow_descriptors(used + more);
    const auto said = [&]() -> Result<std::string> {
      auto peer = engine.connect(arguments.at(0), Deadline::in(20s));
      if (!peer) return "refused";
      auto moved = peer->lookup("memory", Deadline::in(5s)).and_then([&](Remote there) {
        TransferOptions options;
        options.deadline = Deadline::in(5s);
        return engine.read(local, there, everything, options).and_then([](Transfer transfer) {
          return transfer.wait(soon());
        });
      });
      std::string said = moved ? peer->rails().front() + " " + peer->fallback()
                               : "stuck: " + moved.error().to_string();
      return peer->disconnect().map([&] { return said; });
    }();
    parent.say(said ? *said : said.error().to_string());
  }
  parent.say("end");
  return 0;
}

TEST(OutOfReach, FewDescriptorsCostASlowerWay) {
  Engine engine = must(Engine::open(on_this_host("rich")));
  Segment memory = must(engine.add(Memory::own(bytes)));
  const Grant grant = must(memory.grant({}, Rights::read));
  must(engine.publish("memory", grant));
  Child scarce("scarce", {engine.address()});
  int slower = 0;
  std::string last, all;
  for (std::string line = scarce.hear(); line != "end"; line = scarce.hear()) {
    if (line.starts_with("tcp") && line.find("ulimit -n") != std::string::npos) ++slower;
    last = line;
    all += line + "\n";
  }
  EXPECT_GT(slower, 0) << all;
  EXPECT_TRUE(last.starts_with("shm")) << last;
  EXPECT_EQ(scarce.join(), 0);
}

/// Opens an engine with so many descriptors in all, and says how that ended.
WEFT_ROLE(poor) {
  Config config = on_this_host("poor");
  config.metrics_listen = "127.0.0.1:0";
  config.listen = "127.0.0.1:0";
  allow_descriptors(std::stoul(arguments.at(0)));
  try {
    const auto engine = Engine::open(config);
    parent.say(engine ? "opened" : std::string(to_string(engine.error().code())));
  } catch (const std::exception& error) {
    parent.say(std::string("it threw: ") + error.what());
  }
  return 0;
}

TEST(FewDescriptors, OpeningAnEngineFailsAndThrowsNothing) {
  std::set<std::string> outcomes;
  for (int count = 7; count < 64; count += count < 40 ? 1 : 8) {
    Child poor("poor", {std::to_string(count)});
    const std::string outcome = poor.hear();
    EXPECT_FALSE(outcome.starts_with("it threw")) << count << ": " << outcome;
    outcomes.insert(outcome);
  }
  EXPECT_TRUE(outcomes.contains("opened"));
  EXPECT_TRUE(outcomes.contains("unavailable"));
}

}  // namespace
}  // namespace weft::test
