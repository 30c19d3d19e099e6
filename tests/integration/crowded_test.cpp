// Where others compute on all cores, what an operation waits for is not the end of their time
// slices.
#include <algorithm>

#include "engines.hpp"
#include "one_core.hpp"

namespace weft::test {
namespace {

template <typename Body>
Nanoseconds median_of(int times, Body&& body) {
  std::vector<Nanoseconds> all;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    body();
    all.push_back(Clock::now() - begin);
  }
  const auto middle = all.begin() + times / 2;
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

class Crowded : public testing::TestWithParam<std::string> {};

TEST_P(Crowded, MostOperationsDoNotWaitForATimeSlice) {
  const OneCore core;
  if (!core.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  constexpr std::size_t bytes = 65536;
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, bytes, bytes);
  const Computing other;
  const Nanoseconds slice = longest_away();
  if (slice < 1ms) GTEST_SKIP() << "slices of " << slice.count() << " ns";
  const Pair all[] = {{0, 0, 4096}};
  const Nanoseconds write = median_of(400, [&] {
    Transfer transfer = must(pair.a.write(board.local, board.there, all));
    EXPECT_TRUE(succeeds(transfer.wait(soon())));
  });
  EXPECT_LT(write, slice / 2);
  const std::vector<std::byte> word(64, std::byte{7});
  const Nanoseconds message = median_of(400, [&] {
    must(pair.a.send(pair.to_b, 5, word, soon()));
    EXPECT_EQ(must(pair.b.recv(pair.to_a, 5, ~std::uint64_t{0}, soon())).bytes, word);
  });
  EXPECT_LT(message, slice / 2);
  board.expect_pieces(Direction::write, all);
  board.expect_moved(Direction::read, all);
}

INSTANTIATE_TEST_SUITE_P(Providers, Crowded, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
