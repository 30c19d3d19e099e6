// Memory and receives that an engine keeps for its peers: few for each, shared, and given back.
#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "engines.hpp"
#include "forwarding.hpp"
#include "process.hpp"

namespace weft::test::buffers_tests {
namespace {

constexpr std::size_t segment_bytes = std::size_t{2} << 20;
constexpr std::uint64_t exactly = ~0ULL;
constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30;

struct Held {
  std::uint64_t message_bytes = 0, bounce_bytes = 0, promised = 0;
  std::uint64_t bytes() const { return message_bytes + bounce_bytes; }
};

/// Many engines on a few cores: none of them is silent for being late.
Config patient(Config config) {
  config.suspect_after = 100s;
  config.death_after = 200s;
  return config;
}
Deadline late() {
  return Deadline::in(300s);
}

/// By all rails. No rail has promised more than it has posted, nor posted more than its NIC keeps.
Held held_by(const Engine& engine) {
  Held sum;
  for (const RailInfo& rail : engine.info().rails) {
    sum.message_bytes += rail.message_buffer_bytes;
    sum.bounce_bytes += rail.bounce_buffer_bytes;
    sum.promised += rail.receives_promised;
    EXPECT_LE(rail.receives_promised, rail.receives_posted);
    if (rail.capability.receive_queue > 0) {
      EXPECT_LE(rail.receives_posted, rail.capability.receive_queue);
    }
  }
  return sum;
}

/// A NIC that keeps few receives: those of all credits of all peers would be too many.
class ShortQueue final : public ForwardingEndpoint {
 public:
  explicit ShortQueue(std::unique_ptr<providers::Endpoint> real)
      : ForwardingEndpoint(std::move(real)), record_(inner().capability()) {
    record_.receive_queue = length;
  }
  const Capability& capability() const noexcept override { return record_; }
  inline static std::size_t length = 0;

 private:
  Capability record_;
};

/// Four NICs with short queues, where there are so many. "held": what it holds, and its resident
/// bytes. "receive N": takes N messages from each peer.
WEFT_ROLE(crowded) {
  Config config = patient(config_for(arguments.at(0), 1));
  config.max_nics = 4;
  ShortQueue::length = std::stoul(arguments.at(1));
  Engine engine = must(open_wrapped<ShortQueue>(config));
  Segment segment = must(engine.add(Memory::own(segment_bytes)));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  while (true) {
    std::istringstream words(parent.hear(Deadline::in(600s)));
    std::string verb;
    std::uint64_t count = 0;
    words >> verb >> count;
    if (verb == "end") return testing::Test::HasFailure() ? 1 : 0;
    for (const Peer& peer : engine.peers())
      for (std::uint64_t i = 0; i < count; ++i)
        if (must(peer.recv(i, exactly, late())).bytes.size() != i) return 1;
    const Held held = held_by(engine);
    std::ostringstream said;
    said << held.message_bytes << ' ' << held.bounce_bytes << ' ' << held.promised << ' '
         << resident_bytes();
    parent.say(said.str());
  }
}

struct Told : Held {
  std::uint64_t resident = 0;
};
Told told(Child& child, const std::string& question) {
  std::istringstream words(child.ask(question));
  Told told;
  words >> told.message_bytes >> told.bounce_bytes >> told.promised >> told.resident;
  return told;
}

/// A peer of one NIC, with as many requests under way as it may have.
struct Visitor {
  Visitor(const std::string& provider, const std::string& address)
      : engine(must(Engine::open(config(provider)))),
        peer(must(engine.connect(address, late()))),
        segment(must(engine.add(Memory::own(segment_bytes)))),
        remote(must(peer.lookup("memory", late()))) {}
  static Config config(const std::string& provider) {
    Config config = patient(config_for(provider, 1));
    config.max_nics = 1;
    config.threads = 1;
    return config;
  }
  Transfer bounce(Direction direction) {
    const std::array whole{Pair{0, 0, segment_bytes}};
    TransferOptions options;
    options.transport = TransportKind::bounce;
    options.deadline = late();
    return must(direction == Direction::write ? engine.write(segment, remote, whole, options)
                                              : engine.read(segment, remote, whole, options));
  }

  Engine engine;
  Peer peer;
  Segment segment;
  Remote remote;
};

class Buffers : public testing::TestWithParam<std::string> {};

/// The more there are the less each has: that many once took more than a gigabyte.
TEST_P(Buffers, ThatManyPeersUseAreSharedAndGivenBack) {
  const std::size_t count = long_forms() ? 200 : 12;
  constexpr std::size_t messages = 60, credits = 32, first = 4, reserve = 4;
  Child target("crowded", {GetParam(), std::to_string(count * credits)});
  const std::string address = target.hear();
  const Told before = told(target, "held");
  EXPECT_EQ(before.bytes(), 0U);
  std::vector<std::unique_ptr<Visitor>> visitors;
  for (std::size_t i = 0; i < count; ++i)
    visitors.push_back(std::make_unique<Visitor>(GetParam(), address));
  const Told met = told(target, "held");
  EXPECT_EQ(met.bounce_bytes, 0U) << "nothing was bounced yet";
  EXPECT_EQ(met.promised, count * (first + reserve));

  std::vector<Transfer> transfers;
  for (const auto& each : visitors) transfers.push_back(each->bounce(Direction::write));
  for (const auto& each : visitors)
    for (std::size_t i = 0; i < messages; ++i) must(each->peer.send(i, Blob(i), late()));
  const Told busy = told(target, "held");
  for (Transfer& each : transfers) ASSERT_TRUE(succeeds(each.wait(late())));
  const Told after = told(target, "receive " + std::to_string(messages));
  for (const Told& at : {busy, after}) {
    EXPECT_LT(at.bytes(), gigabyte);
    EXPECT_LT(at.resident, gigabyte + before.resident);
  }
  EXPECT_GT(after.bounce_bytes, 0U);
  std::cout << count << " peers: met " << met.bytes() << " bytes, busy " << busy.bytes()
            << ", after " << after.bytes() << ", resident " << before.resident << " to "
            << after.resident << ", promised " << busy.promised << '\n';

  EXPECT_TRUE(comes_to_be([&] {
    std::this_thread::sleep_for(a_while);
    const Told now = told(target, "held");
    return now.bounce_bytes == 0 && now.promised == count * (first + reserve);
  })) << "what is idle is given back";
  for (const auto& each : visitors)
    ASSERT_TRUE(succeeds(each->bounce(Direction::read).wait(late())));
  target.say("end");
  EXPECT_EQ(target.join(), 0);
}

/// One request of a peer's and one answer at a time for each rail.
TEST_P(Buffers, ThatAreTooFewForAllAreTakenInTurns) {
  Config config = config_for(GetParam(), 1);
  config.bounce_memory = std::size_t{1} << 20;
  config.bounce_buffer_bytes = std::size_t{512} << 10;
  std::vector<Engine> engines;
  for (int i = 0; i < 4; ++i) engines.push_back(must(Engine::open(config)));
  std::vector<Segment> segments;
  std::vector<Grant> grants;
  for (Engine& each : engines) {
    segments.push_back(must(each.add(Memory::own(segment_bytes))));
    grants.push_back(must(segments.back().grant({}, Rights::read_write)));
    must(each.publish("memory", grants.back()));
  }
  std::vector<Transfer> transfers;
  TransferOptions options;
  options.transport = TransportKind::bounce;
  options.deadline = soon();
  for (std::size_t i = 0; i < engines.size(); ++i)
    for (std::size_t j = i + 1; j < engines.size(); ++j) {
      auto [to_j, to_i] = acquaint(engines[i], engines[j]);
      const std::array whole{Pair{0, 0, segment_bytes}};
      // All ask each other.
      const Remote at_j = must(to_j.lookup("memory", soon()));
      const Remote at_i = must(to_i.lookup("memory", soon()));
      transfers.push_back(must(engines[i].write(segments[i], at_j, whole, options)));
      transfers.push_back(must(engines[j].write(segments[j], at_i, whole, options)));
    }
  for (Transfer& each : transfers) EXPECT_TRUE(succeeds(each.wait(soon())));
  for (const Engine& each : engines) held_by(each);
}

INSTANTIATE_TEST_SUITE_P(Providers, Buffers, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::buffers_tests
