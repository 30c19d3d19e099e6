// Many transfers, threads, engines and processes at once.
#include <barrier>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

class Load : public testing::TestWithParam<Variant> {};

TEST_P(Load, SixtyFourTransfersFromEightThreads) {
  constexpr std::size_t threads = 8, each = 8, slice = 200'003, pieces = 16;
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, threads * each * slice, threads * each * slice);
  std::vector<Pair> written;
  std::vector<std::vector<Pair>> lists;
  for (std::size_t i = 0; i < threads * each; ++i) {
    auto& list = lists.emplace_back();
    // The slices of one side in the opposite order on the other, with gaps between the pieces.
    const std::uint64_t local = i * slice, remote = (threads * each - 1 - i) * slice;
    constexpr std::uint64_t length = slice / pieces - 1;
    for (std::uint64_t piece = 0; piece < pieces; ++piece)
      list.push_back({local + piece * (length + 1), remote + piece * (length + 1), length});
    written.insert(written.end(), list.begin(), list.end());
  }
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    std::barrier start(threads);
    std::atomic<int> failures{0};
    std::vector<std::jthread> workers;
    for (std::size_t thread = 0; thread < threads; ++thread)
      workers.emplace_back([&, thread] {
        start.arrive_and_wait();
        std::vector<Transfer> transfers;
        for (std::size_t i = 0; i < each; ++i) {
          const auto& list = lists[thread * each + i];
          auto transfer = direction == Direction::write
                              ? pair.a.write(board.local, board.there, list)
                              : pair.a.read(board.local, board.there, list);
          if (transfer)
            transfers.push_back(std::move(*transfer));
          else
            ++failures;
        }
        for (Transfer& transfer : transfers) failures += transfer.wait(soon()) ? 0 : 1;
      });
    workers.clear();
    EXPECT_EQ(failures, 0);
    board.expect_pieces(direction, written);
  }
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
}

TEST_P(Load, BothSidesAtOnce) {
  constexpr std::size_t bytes = 6'000'001;
  Couple pair = couple(config_for(GetParam()));
  Board to_b(pair, bytes, bytes);
  Segment source = must(pair.b.add(Memory::own(bytes))),
          target = must(pair.a.add(Memory::own(bytes)));
  fill(bytes_of(source), 77);
  Grant grant = must(target.grant({}, Rights::write));
  const Remote there = must(pair.b.import(grant.blob()));
  const Pair piece[] = {{0, 0, bytes}};
  for (int round = 0; round < 5; ++round) {
    Transfer one = must(pair.a.write(to_b.local, to_b.there, piece));
    Transfer other = must(pair.b.write(source, there, piece));
    ASSERT_TRUE(succeeds(one.wait(soon())));
    ASSERT_TRUE(succeeds(other.wait(soon())));
  }
  to_b.expect_pieces(Direction::write, piece);
  EXPECT_TRUE(holds(bytes_of(target), 77));
}

TEST_P(Load, EnginesOfOneProcessAllToAll) {
  constexpr std::size_t count = 5, slice = 300'001;
  std::vector<Engine> engines;
  for (std::size_t i = 0; i < count; ++i)
    engines.push_back(must(Engine::open(config_for(GetParam(), 1))));
  std::vector<Segment> own, shared;
  std::vector<Grant> grants;
  for (std::size_t i = 0; i < count; ++i) {
    own.push_back(must(engines[i].add(Memory::own(slice))));
    fill(bytes_of(own[i]), 100 + i);
    shared.push_back(must(engines[i].add(Memory::own(count * slice))));
    grants.push_back(must(shared[i].grant({}, Rights::write)));
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) acquaint(engines[i], engines[j]);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const Remote there = must(engines[i].import(grants[j].blob()));
      const Pair piece[] = {{0, i * slice, slice}};
      transfers.push_back(must(engines[i].write(own[i], there, piece)));
    }
  for (Transfer& transfer : transfers) ASSERT_TRUE(succeeds(transfer.wait(soon())));
  const Blob zeros(slice);
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes part = bytes_of(shared[j]).subspan(i * slice, slice);
      if (i == j)
        EXPECT_TRUE(same_bytes(part, zeros));
      else
        EXPECT_TRUE(holds(part, 100 + i)) << i << " to " << j;
    }
}

/// Spokes: several engines, each writes its slice of the hub's memory and reads it back elsewhere.
WEFT_ROLE(spokes) {
  const Variant variant{arguments.at(0), arguments.at(1) == "bounce" ? TransportKind::bounce
                                                                     : TransportKind::one_sided};
  const std::string& hub = arguments.at(2);
  const std::size_t first = std::stoul(arguments.at(3)), count = std::stoul(arguments.at(4));
  const std::size_t slice = std::stoul(arguments.at(5));
  std::vector<Engine> engines;
  std::vector<Segment> segments;
  std::vector<Remote> remotes;
  for (std::size_t i = 0; i < count; ++i) {
    engines.push_back(must(Engine::open(config_for(variant, 1))));
    const Peer peer = must(engines[i].connect(hub, soon()));
    remotes.push_back(must(peer.lookup("board", soon())));
    segments.push_back(must(engines[i].add(Memory::own(2 * slice))));
    fill(bytes_of(segments[i]).first(slice), first + i);
  }
  parent.say("ready");
  parent.hear(soon());
  for (int round = 0; round < 3; ++round) {
    std::vector<Transfer> transfers;
    for (const bool write : {true, false}) {
      for (std::size_t i = 0; i < count; ++i) {
        const Pair piece[] = {{write ? 0 : slice, (first + i) * slice, slice}};
        transfers.push_back(must(write ? engines[i].write(segments[i], remotes[i], piece)
                                       : engines[i].read(segments[i], remotes[i], piece)));
      }
      for (Transfer& transfer : transfers) must(transfer.wait(soon()));
    }
    for (std::size_t i = 0; i < count; ++i)
      if (!holds(bytes_of(segments[i]).subspan(slice), first + i)) return 2;
  }
  parent.say("written");
  parent.hear(soon());
  return 0;
}

TEST_P(Load, SixteenPeersOfOneEngine) {
  constexpr std::size_t processes = 4, each = 4, slice = 100'003;
  Engine hub = must(Engine::open(config_for(GetParam())));
  Segment board = must(hub.add(Memory::own((processes * each + 1) * slice)));
  fill(bytes_of(board), 1000);
  const Range granted[] = {{0, processes * each * slice}};
  Grant grant = must(board.grant(granted, Rights::read_write));
  must(hub.publish("board", grant));
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < processes; ++i)
    children.push_back(std::make_unique<Child>(
        "spokes",
        std::vector<std::string>{
            GetParam().provider,
            GetParam().transport == TransportKind::bounce ? "bounce" : "one_sided", hub.address(),
            std::to_string(i * each), std::to_string(each), std::to_string(slice)}));
  for (auto& child : children) ASSERT_EQ(child->hear(), "ready");
  EXPECT_EQ(hub.peers().size(), processes * each);
  for (auto& child : children) child->say("go");
  for (auto& child : children) ASSERT_EQ(child->hear(), "written");
  for (std::size_t i = 0; i < processes * each; ++i)
    EXPECT_TRUE(holds(Bytes(board.data() + i * slice, slice), i)) << i;
  EXPECT_TRUE(
      holds(Bytes(board.data() + processes * each * slice, slice), 1000, processes * each * slice));
  for (auto& child : children) child->say("end");
  for (auto& child : children) EXPECT_EQ(child->join(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Load, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
