// Transfers that are checked end to end: right bytes pass, and others are found.

#include <future>
#include <numeric>
#include <random>

#include "after_each.hpp"
#include "engines.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

TransferOptions verified() {
  TransferOptions options;
  options.verify = true;
  return options;
}

class Verify : public testing::TestWithParam<Variant> {
 protected:
  /// Calls back when a chunk has ended.
  Couple couple_with(std::function<void(const core::Op&)> then) {
    return couple(config, config, after_each(std::move(then)));
  }
  Config config = config_for(GetParam());
};

TEST_P(Verify, RightBytesPass) {
  Couple pair = couple(config);
  constexpr std::size_t size = 3'000'000;
  Board board(pair, size, size);
  const Pair pairs[] = {{0, 1000, 1}, {5, 2'000'000, 900'001}, {1'000'000, 1001, 70'000}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    board.expect_moved(direction, pairs, verified());
    // Nothing at all, and pieces of nothing.
    board.expect_moved(direction, {}, verified());
    const Pair empty[] = {{0, 0, 0}, {7, 9, 0}};
    board.expect_moved(direction, empty, verified());
  }
}

TEST_P(Verify, RightBytesPassInAllForms) {
  Couple pair = couple(config);
  constexpr std::size_t count = 3000, bytes = 700;  // more than one question may ask for
  Board board(pair, count * bytes * 2, count * bytes * 2);
  std::vector<std::uint32_t> here(count), there(count);
  std::iota(here.begin(), here.end(), 0U);
  std::iota(there.begin(), there.end(), 0U);
  std::shuffle(there.begin(), there.end(), std::mt19937(7));
  const Strided strided{{3, 5, bytes}, count, 2 * bytes, bytes + 1};
  const Paged paged{bytes, 0, bytes, 0, bytes, here, there};
  std::vector<Pair> stripes, pages, picked;
  for (std::size_t i = 0; i < count; ++i) {
    stripes.push_back({3 + i * 2 * bytes, 5 + i * (bytes + 1), bytes});
    pages.push_back({i * bytes, there[i] * bytes, bytes});
  }
  const std::uint32_t picks[] = {2999, 0, 17, 18, 5};
  for (const std::uint32_t pick : picks) picked.push_back(pages[pick]);
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    const auto carry = [&](const Prepared& prepared, const std::vector<Pair>& pairs,
                           std::optional<std::span<const std::uint32_t>> some = std::nullopt) {
      Transfer transfer = must(some ? pair.a.submit(prepared, *some, verified())
                                    : pair.a.submit(prepared, verified()));
      EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
      board.expect_pieces(direction, pairs);
    };
    carry(must(pair.a.prepare(board.local, board.there, direction, strided)), stripes);
    const Prepared of_pages = must(pair.a.prepare(board.local, board.there, direction, paged));
    carry(of_pages, pages);
    board.repaint();
    carry(of_pages, picked, picks);
  }
}

TEST_P(Verify, TheSignalComesAfterTheCheck) {
  Couple pair = couple(config);
  Board board(pair, 100'000, 100'000);
  TransferOptions options = verified();
  options.signal = Signal{4};
  const Pair all[] = {{0, 0, 100'000}};
  board.expect_moved(Direction::write, all, options);
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(4, 1)).wait(soon())));
}

TEST_P(Verify, ManyAtOnceBothWays) {
  Couple pair = couple(config);
  constexpr std::size_t count = 200, bytes = 30'000;
  Board board(pair, count * bytes, count * bytes);
  Segment source = must(pair.b.add(Memory::own(count * bytes))),
          target = must(pair.a.add(Memory::own(count * bytes)));
  fill(bytes_of(source), 99);
  const Grant grant = must(target.grant({}, Rights::write));
  const Remote back = must(pair.b.import(grant.blob()));
  std::vector<Transfer> transfers;
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const Pair piece[] = {{i * bytes, (count - 1 - i) * bytes, bytes}};
    pairs.push_back(piece[0]);
    transfers.push_back(must(pair.a.write(board.local, board.there, piece, verified())));
    const Pair same[] = {{i * bytes, i * bytes, bytes}};
    transfers.push_back(must(pair.b.write(source, back, same, verified())));
  }
  for (Transfer& each : transfers) EXPECT_TRUE(succeeds(each.wait(soon())));
  board.expect_pieces(Direction::write, pairs);
  EXPECT_TRUE(holds(bytes_of(target), 99));
}

TEST_P(Verify, AByteThatChangedIsFound) {
  for (const Direction direction : {Direction::write, Direction::read}) {
    SCOPED_TRACE(direction == Direction::write ? "write" : "read");
    std::byte* memory = nullptr;
    std::atomic<bool> changed{false};
    Couple pair = couple_with([&](const core::Op&) {
      if (!changed.exchange(true)) *memory ^= std::byte{0x10};
    });
    Board board(pair, 100'000, 100'000);
    // The chunk that ended first has placed its bytes; where there is one chunk, all are there.
    memory = (direction == Direction::write ? board.remote : board.local).data() + 40'000;
    TransferOptions options = verified();
    options.signal = Signal{4};
    const Pair piece[] = {{39'999, 39'999, 2}};
    Expectation expectation = must(pair.to_a.expect(4, 1));
    Transfer transfer =
        must(direction == Direction::write ? pair.a.write(board.local, board.there, piece, options)
                                           : pair.a.read(board.local, board.there, piece, options));
    const auto ended = transfer.wait_quiescent(soon());
    ASSERT_TRUE(fails_with(ended, Code::corrupt));
    EXPECT_EQ(transfer.state(), State::failed);
    EXPECT_EQ(ended.error().peer(), pair.to_b.name());
    EXPECT_NE(ended.error().message().find("2 bytes from byte 0 "), std::string::npos)
        << ended.error().message();
    const auto signalled = expectation.wait(soon());
    ASSERT_TRUE(fails_with(signalled, Code::remote_failed));
    EXPECT_NE(signalled.error().message().find("corrupt"), std::string::npos)
        << signalled.error().message();
    // What is not asked to be checked is not.
    changed = false;
    EXPECT_TRUE(succeeds(must(pair.a.write(board.local, board.there, piece)).wait(soon())));
  }
}

TEST_P(Verify, WhatDiffersIsFoundInEveryPart) {
  constexpr std::size_t size = 130 << 20;  // three parts
  constexpr std::uint64_t part = 64 << 20;
  std::byte* memory = nullptr;
  std::atomic<bool> change{false};
  std::uint64_t carried = 0;
  std::mutex mutex;
  Couple pair = couple_with([&](const core::Op& op) {
    const std::lock_guard lock(mutex);
    carried += op.bytes();
    if (carried == size && change && !op.chunk.proof()) *memory ^= std::byte{1};
  });
  Board board(pair, size, size);
  const Pair piece[] = {{0, 0, size}};
  board.expect_moved(Direction::write, piece, verified());
  for (std::uint64_t at : {std::uint64_t{0}, 2 * part - 1, std::uint64_t{size - 1}}) {
    change = true;
    memory = board.remote.data() + at;
    {
      const std::lock_guard lock(mutex);
      carried = 0;
    }
    Transfer transfer = must(pair.a.write(board.local, board.there, piece, verified()));
    const auto ended = transfer.wait(soon());
    ASSERT_TRUE(fails_with(ended, Code::corrupt));
    const std::string where = "from byte " + std::to_string(at / part * part) + " ";
    EXPECT_NE(ended.error().message().find(where), std::string::npos) << ended.error().message();
  }
}

TEST_P(Verify, AGrantThatIsRevokedDuringTheCheckEndsIt) {
  std::optional<Board> board;
  Couple* both = nullptr;
  std::optional<std::future<Result<Revoked>>> revoked;
  Couple pair = couple_with([&](const core::Op&) {
    if (revoked) return;
    revoked = std::async(std::launch::async, [&] { return board->grant.revoke(soon()); });
    // Until it is: a grant that is published holds.
    const Deadline patience = soon();
    while (both->b.publish("memory", board->grant) && !patience.passed()) std::this_thread::yield();
  });
  both = &pair;
  board.emplace(pair, 1000, 1000);
  const Pair piece[] = {{0, 0, 1000}};
  Transfer transfer = must(pair.a.write(board->local, board->there, piece, verified()));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
  EXPECT_EQ(must(revoked->get()), Revoked::quiescent);
}

/// Serves memory. Arguments: provider.
WEFT_ROLE(checked_server) {
  Config config = config_for(arguments.at(0));
  Engine engine = must(Engine::open(config));
  Segment segment = must(engine.add(Memory::own(1 << 20)));
  Grant grant = must(segment.grant({}, Rights::write));
  must(engine.publish("memory", grant));
  parent.say(engine.address());
  parent.hear(Deadline::in(300s));
  return 0;
}

/// What becomes of a transfer to a peer that is there until the bytes are, and then stands still.
class VerifyWithFrozenPeer : public Verify {
 protected:
  Transfer submit(std::optional<Deadline> deadline = std::nullopt) {
    TransferOptions options = verified();
    options.deadline = deadline;
    const Pair piece[] = {{0, 0, 1000}};
    Transfer transfer = must(engine.write(segment, there, piece, options));
    const Deadline patience = soon();
    while (transfer.report().bytes_done < 1000 && !patience.passed()) std::this_thread::yield();
    EXPECT_EQ(transfer.report().bytes_done, 1000U);
    return transfer;
  }
  /// Once the bytes are proven to be there.
  void ended(const core::Op& op) {
    const auto rails = engine.info().rails;
    const bool proves = op.chunk.proof() || GetParam().transport == TransportKind::bounce ||
                        rails.at(0).capability.proof == CompletionProof::visible;
    if (proves) server.freeze();
  }

  Child server{"checked_server", {GetParam().provider}};
  const std::string address = server.hear();
  Engine engine = must(core::open_engine(config, after_each([this](auto& op) { ended(op); })));
  const Peer peer = must(engine.connect(address, soon()));
  const Remote there = must(peer.lookup("memory", soon()));
  const Segment segment = must(engine.add(Memory::own(1 << 20)));
};

TEST_P(VerifyWithFrozenPeer, ItsDeadlineEndsTheCheck) {
  Transfer transfer = submit(Deadline::in(1s));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
}

TEST_P(VerifyWithFrozenPeer, CancellingEndsTheCheck) {
  Transfer transfer = submit();
  transfer.cancel();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::cancelled));
}

TEST_P(VerifyWithFrozenPeer, ThePeersDeathEndsTheCheck) {
  Transfer transfer = submit();
  EXPECT_EQ(transfer.state(), State::active);
  server.kill();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::peer_down));
}

INSTANTIATE_TEST_SUITE_P(All, VerifyWithFrozenPeer, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(All, Verify, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
