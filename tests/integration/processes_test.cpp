// Between processes: one pair with every form of data, and eight that all know each other.
#include <algorithm>
#include <random>
#include <sstream>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

Variant variant_of(const std::vector<std::string>& arguments) {
  return {arguments.at(0),
          arguments.at(1) == "bounce" ? TransportKind::bounce : TransportKind::one_sided};
}

std::vector<std::string> arguments_of(const Variant& variant) {
  return {variant.provider, variant.transport == TransportKind::bounce ? "bounce" : "one_sided"};
}

/// Owns memory that the test writes and reads, and looks at it when asked:
/// "fill SEED" and "check SEED FROM LENGTH AT" (LENGTH bytes at AT are those of SEED from FROM on).
WEFT_ROLE(owner) {
  Engine engine = must(Engine::open(config_for(variant_of(arguments), 3)));
  Segment segment = must(engine.add(Memory::own(std::stoul(arguments.at(2)))));
  Grant grant = must(segment.grant({}, Rights::read_write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  while (true) {
    std::istringstream words(parent.hear(Deadline::in(120s)));
    std::string verb;
    std::uint64_t seed = 0, from = 0, length = 0, at = 0;
    words >> verb >> seed >> from >> length >> at;
    if (verb == "end") return 0;
    if (verb == "fill") fill(bytes_of(segment), seed);
    const auto checked = verb == "check" ? holds(bytes_of(segment).subspan(at, length), seed, from)
                                         : testing::AssertionSuccess();
    parent.say(checked ? "yes" : checked.message());
  }
}

class TwoProcesses : public testing::TestWithParam<Variant> {
 protected:
  static constexpr std::size_t size = 9'000'001;
  static std::vector<std::string> arguments() {
    auto words = arguments_of(GetParam());
    words.push_back(std::to_string(size));
    return words;
  }
  Child owner{"owner", arguments()};
  Engine engine = must(Engine::open(config_for(GetParam(), 2)));
  Peer peer = must(engine.connect(owner.hear(), soon()));
  Remote remote = must(peer.lookup("memory", soon()));
  Segment segment = must(engine.add(Memory::own(size)));

  void expect_there(std::uint64_t seed, std::uint64_t from, std::uint64_t length,
                    std::uint64_t at) {
    std::ostringstream question;
    question << "check " << seed << ' ' << from << ' ' << length << ' ' << at;
    EXPECT_EQ(owner.ask(question.str()), "yes") << question.str();
  }
  void TearDown() override {
    owner.say("end");
    EXPECT_EQ(owner.join(), 0);
  }
};

TEST_P(TwoProcesses, WriteOfManyPieces) {
  owner.ask("fill 1");
  fill(bytes_of(segment), 2);
  // Piece i of both sides in turn: what lies between stays stream 1.
  std::vector<Pair> pairs;
  std::uint64_t at = 5;
  for (std::uint64_t length = 1; at + 2 * length < size; length = length * 3 / 2 + 1) {
    pairs.push_back({at + 1, at, length});
    at += 2 * length;
  }
  ASSERT_TRUE(succeeds(must(engine.write(segment, remote, pairs)).wait(soon())));
  std::uint64_t end = 0;
  for (const Pair& pair : pairs) {
    expect_there(1, end, pair.remote - end, end);
    expect_there(2, pair.local, pair.length, pair.remote);
    end = pair.remote + pair.length;
  }
  expect_there(1, end, size - end, end);
  EXPECT_TRUE(holds(bytes_of(segment), 2));
}

TEST_P(TwoProcesses, ReadOfManyPieces) {
  owner.ask("fill 3");
  fill(bytes_of(segment), 4);
  std::vector<Pair> pairs;
  for (std::uint64_t at = 7; at + 40'000 < size; at += 40'000)
    pairs.push_back({at, at + 3, 30'011});
  std::shuffle(pairs.begin(), pairs.end(), std::mt19937(1));
  ASSERT_TRUE(succeeds(must(engine.read(segment, remote, pairs)).wait(soon())));
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.local < b.local; });
  std::uint64_t end = 0;
  for (const Pair& pair : pairs) {
    ASSERT_TRUE(holds(bytes_of(segment).subspan(end, pair.local - end), 4, end));
    ASSERT_TRUE(holds(bytes_of(segment).subspan(pair.local, pair.length), 3, pair.remote));
    end = pair.local + pair.length;
  }
  EXPECT_TRUE(holds(bytes_of(segment).subspan(end), 4, end));
  expect_there(3, 0, size, 0);
}

TEST_P(TwoProcesses, AllOfIt) {
  owner.ask("fill 5");
  fill(bytes_of(segment), 6);
  const Pair all[] = {{0, 0, size}};
  ASSERT_TRUE(succeeds(must(engine.write(segment, remote, all)).wait(soon())));
  expect_there(6, 0, size, 0);
  owner.ask("fill 7");
  ASSERT_TRUE(succeeds(must(engine.read(segment, remote, all)).wait(soon())));
  EXPECT_TRUE(holds(bytes_of(segment), 7));
}

INSTANTIATE_TEST_SUITE_P(All, TwoProcesses, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

/// One of several that write a slice into each other. Hears all addresses in order of the ranks.
WEFT_ROLE(member) {
  const std::size_t rank = std::stoul(arguments.at(2)), count = std::stoul(arguments.at(3));
  const std::size_t slice = std::stoul(arguments.at(4));
  Engine engine = must(Engine::open(config_for(variant_of(arguments), 1)));
  Segment own = must(engine.add(Memory::own(slice)));
  fill(bytes_of(own), rank);
  Segment board = must(engine.add(Memory::own(count * slice)));
  Grant grant = must(board.grant({}, Rights::write));
  must(engine.publish("board", grant));
  parent.say(engine.address());
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) addresses.push_back(parent.hear(soon()));
  // All at once, so that pairs of engines dial each other at the same time.
  std::vector<Transfer> transfers;
  std::vector<std::pair<Peer, Expectation>> expected;
  for (std::size_t i = 1; i < count; ++i) {
    const Peer peer = must(engine.connect(addresses[(rank + i) % count], soon()));
    expected.emplace_back(peer, must(peer.expect(1, 1)));
    const Remote there = must(peer.lookup("board", soon()));
    const Pair piece[] = {{0, rank * slice, slice}};
    TransferOptions options;
    options.signal = Signal{1};
    transfers.push_back(must(engine.write(own, there, piece, options)));
  }
  for (Transfer& transfer : transfers) must(transfer.wait(soon()));
  for (auto& [peer, expectation] : expected) must(expectation.wait(soon()));
  for (std::size_t i = 0; i < count; ++i) {
    if (i != rank && !holds(bytes_of(board).subspan(i * slice, slice), i)) return 2;
  }
  parent.say("right");
  parent.hear(soon());
  return 0;
}

class EightProcesses : public testing::TestWithParam<Variant> {};

TEST_P(EightProcesses, AllToAll) {
  constexpr std::size_t count = 8;
  std::vector<std::unique_ptr<Child>> members;
  for (std::size_t i = 0; i < count; ++i) {
    auto words = arguments_of(GetParam());
    for (const std::size_t word : {i, count, std::size_t{150'001}})
      words.push_back(std::to_string(word));
    members.push_back(std::make_unique<Child>("member", words));
  }
  std::vector<std::string> addresses;
  for (auto& member : members) addresses.push_back(member->hear());
  for (auto& member : members)
    for (const std::string& address : addresses) member->say(address);
  for (auto& member : members) EXPECT_EQ(member->hear(), "right");
  for (auto& member : members) member->say("end");
  for (auto& member : members) EXPECT_EQ(member->join(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, EightProcesses, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
