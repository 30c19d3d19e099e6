// What fork does to an engine.
#include <sys/wait.h>
#include <unistd.h>

#include "engines.hpp"
#include "forked.hpp"
#include "gate.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

class Fork : public testing::TestWithParam<std::string> {};

/// Runs in the forked child: the number of the first call that does not fail as it should.
int first_wrong(Couple& pair, Board& board, Transfer& transfer, Expectation& expectation,
                Receive& receive, const Prepared& prepared) {
  const Deadline brief = Deadline::in(200ms);
  const Pair piece[] = {{0, 0, 10}};
  int number = 0;
  const auto wrong = [&](const auto& result) {
    ++number;
    return result || result.error().code() != Code::forked;
  };
  if (wrong(pair.a.connect(pair.b.address(), brief))) return number;
  if (wrong(pair.a.accept(brief))) return number;
  if (wrong(pair.to_b.disconnect())) return number;
  if (wrong(pair.a.add(Memory::own(10)))) return number;
  if (wrong(pair.a.import(board.grant.blob()))) return number;
  if (wrong(pair.b.publish("name", board.grant))) return number;
  if (wrong(pair.to_b.lookup("name", brief))) return number;
  if (wrong(pair.a.prepare(board.local, board.there, Direction::write, piece))) return number;
  if (wrong(pair.a.submit(prepared))) return number;
  if (wrong(pair.a.write(board.local, board.there, piece))) return number;
  if (wrong(pair.a.warm(board.local, board.there))) return number;
  if (wrong(pair.a.read(board.local, board.there, piece))) return number;
  if (wrong(pair.to_b.signal({1}, brief))) return number;
  if (wrong(pair.to_b.expect(1, 1))) return number;
  if (wrong(pair.to_b.send(1, {}, brief))) return number;
  if (wrong(pair.to_b.receive(1, 1))) return number;
  if (wrong(pair.to_b.recv(1, 1, brief))) return number;
  if (wrong(pair.a.progress())) return number;
  if (wrong(pair.a.close(brief))) return number;
  if (wrong(board.local.grant({}, Rights::read))) return number;
  if (wrong(board.local.release(brief))) return number;
  if (wrong(board.grant.revoke(brief))) return number;
  if (wrong(transfer.wait(brief))) return number;
  if (wrong(transfer.wait_quiescent(brief))) return number;
  if (wrong(expectation.wait(brief))) return number;
  if (wrong(receive.wait(brief))) return number;
  return 0;
}

TEST_P(Fork, EveryCallOfTheChildFailsAndTheParentGoesOn) {
  Gate gate;
  Couple pair = couple(config_for(GetParam()), config_for(GetParam()), gate.hooks());
  Board board(pair, 1 << 20, 1 << 20);
  const Pair all[] = {{0, 0, 1 << 20}};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, all));
  Transfer transfer = must(pair.a.submit(prepared));
  Expectation expectation = must(pair.to_b.expect(1, 1));
  Receive receive = must(pair.to_b.receive(1, 1));
  EXPECT_EQ(in_forked_child(
                [&] { return first_wrong(pair, board, transfer, expectation, receive, prepared); }),
            0)
      << "the number of the call that did not fail with `forked`";
  gate.open();
  EXPECT_TRUE(succeeds(transfer.wait(soon())));
  board.expect_pieces(Direction::write, all);
  board.repaint();
  board.expect_moved(Direction::read, all);
  must(pair.to_a.signal({1}, soon()));
  EXPECT_TRUE(succeeds(expectation.wait(soon())));
}

TEST_P(Fork, TheChildMayDestroyWhatItInherited) {
  auto pair = std::make_optional(couple(config_for(GetParam())));
  auto board = std::make_optional<Board>(*pair, 1000, 1000);
  std::optional<Expectation> expectation = must(pair->to_b.expect(1, 1));
  EXPECT_EQ(in_forked_child([&] {
              expectation.reset();
              board.reset();
              pair.reset();
              return 0;
            }),
            0);
  // The parent's shared memory, descriptors and peers are untouched.
  const Pair all[] = {{0, 0, 1000}};
  board->expect_moved(Direction::write, all);
  must(pair->to_a.signal({1}, soon()));
  EXPECT_TRUE(succeeds(expectation->wait(soon())));
}

TEST_P(Fork, TheChildsExitLeavesTheParentAlone) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, 1000, 1000);
  const pid_t child = fork();
  if (child == 0) std::exit(0);  // with all its exit handlers
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  const Pair all[] = {{0, 0, 1000}};
  board.expect_moved(Direction::write, all);
  Couple another = couple(config_for(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, Fork, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
