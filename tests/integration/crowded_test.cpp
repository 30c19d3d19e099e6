// Where others compute on all cores, what an operation waits for is not the end of their time
// slices.
#include <algorithm>
#include <array>

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

class Crowded : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t bytes = 65536;
  static constexpr Pair piece{0, 0, 4096};

  /// Its threads keep to the core, too.
  static Config here() {
    Config config = config_for(GetParam());
    config.place_threads = false;
    return config;
  }

  void SetUp() override {
    if (!core_.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  }

  static Nanoseconds write(Couple& pair, const Board& board) {
    return median_of(400, [&] {
      Transfer transfer = must(pair.a.write(board.local, board.there, std::array{piece}));
      EXPECT_TRUE(succeeds(transfer.wait(soon())));
    });
  }
  static Nanoseconds message(Couple& pair) {
    const std::vector<std::byte> word(64, std::byte{7});
    return median_of(400, [&] {
      must(pair.to_b.send(5, word, soon()));
      EXPECT_EQ(must(pair.to_a.recv(5, ~std::uint64_t{0}, soon())).bytes, word);
    });
  }

 private:
  OneCore core_;
};

TEST_P(Crowded, MostOperationsDoNotWaitForATimeSlice) {
  Couple pair = couple(here());
  Board board(pair, bytes, bytes);
  const Computing other;
  const Nanoseconds slice = longest_away();
  if (slice < 1ms) GTEST_SKIP() << "slices of " << slice.count() << " ns";
  EXPECT_LT(write(pair, board), slice / 2);
  EXPECT_LT(message(pair), slice / 2);
  board.expect_pieces(Direction::write, std::array{piece});
  board.expect_moved(Direction::read, std::array{piece});
}

TEST_P(Crowded, NorDoThoseOfACallerWhoMakesProgressHimself) {
  Config manual = here();
  manual.progress = Progress::manual;
  Couple pair = couple(manual, here());
  Board board(pair, bytes, bytes);
  const Computing other;
  const Nanoseconds slice = longest_away();
  if (slice < 1ms) GTEST_SKIP() << "slices of " << slice.count() << " ns";
  EXPECT_LT(write(pair, board), slice / 2);
  board.expect_pieces(Direction::write, std::array{piece});
  board.expect_moved(Direction::read, std::array{piece});
}

INSTANTIATE_TEST_SUITE_P(Providers, Crowded, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
