// A trainer's ranks and inference ranks in processes of their own, whose every byte is checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <weft/weights.hpp>

#include "process.hpp"

namespace weft::weights::test {

using std::chrono::milliseconds;

struct GroupOptions {
  std::string provider = "tcp";
  std::size_t trainers = 4, ranks = 4;
  std::size_t sets = 2;         // of each rank's memory
  std::string state_file = {};  // of rank 0
  std::size_t replicas = 1;     // so many ranks have the same columns
  FanOut fan_out = FanOut::direct;
  std::uint64_t chunk_bytes = 64 << 10;
  bool verify = false;
  std::size_t rails = 1;
  bool faulty = false;  // ranks obey "fault"
};

/// Trainers have the rows of a matrix, ranks its columns; both have a vector whole.
class Group {
 public:
  explicit Group(const GroupOptions& options);
  ~Group();

  std::size_t trainers() const noexcept { return trainers_.size(); }
  std::size_t ranks() const noexcept { return ranks_.size(); }
  weft::test::Child& trainer(std::size_t i) { return *trainers_[i]; }
  weft::test::Child& rank(std::size_t i) { return *ranks_[i]; }
  void start_trainer(std::size_t i);
  void start_rank(std::size_t i);
  bool trainer_lives(std::size_t i) const { return trainers_[i] && !trainers_[i]->ended(); }
  bool rank_lives(std::size_t i) const { return ranks_[i] && !ranks_[i]->ended(); }

  /// All trainers that live begin to publish; heard() has what each says: "done", or the error.
  void begin(std::uint64_t step, milliseconds time);
  std::vector<std::string> heard();
  std::vector<std::string> publish(std::uint64_t step, milliseconds time) {
    begin(step, time);
    return heard();
  }
  /// Of all elements once.
  static std::uint64_t model_bytes() noexcept;
  /// What the trainers sent of the last step that was done.
  std::uint64_t sent_bytes();
  /// "none 0", "ready 7", "in_doubt 6", "unusable 0".
  std::string standing(std::size_t rank) { return rank_ask(rank, "standing"); }
  /// "ok", or why `step` did not come.
  std::string wait(std::size_t rank, std::uint64_t step, milliseconds time);
  /// What the reader that looks all the time has found wrong; empty if nothing.
  std::string wrong(std::size_t rank) { return rank_ask(rank, "wrong"); }
  std::string rank_ask(std::size_t rank, const std::string& text) {
    return ranks_[rank]->ask(text);
  }

 private:
  std::vector<std::string> arguments(std::size_t index) const;

  const GroupOptions options_;
  const std::string leader_;
  std::vector<std::unique_ptr<weft::test::Child>> trainers_, ranks_;
  std::vector<bool> publishing_;
};

/// For a step that nothing disturbs.
constexpr milliseconds long_enough = std::chrono::seconds(60);
void expect_all_done(const std::vector<std::string>& heard);
/// Asks again and again, for a minute at most, until the answer has that part.
bool comes_to_say(Group& group, std::size_t rank, const std::string& question,
                  const std::string& part);
/// Of the ranks that live; and no reader has seen anything wrong.
void expect_all_at(Group& group, std::uint64_t step);

}  // namespace weft::weights::test
