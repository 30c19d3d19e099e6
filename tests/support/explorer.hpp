// Runs a scenario once for every way in which its choices can be made.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::test {

/// Handed to the scenario, which must do the same whenever it is given the same answers.
class Choices {
 public:
  /// One of `count` things, at least one.
  std::size_t choose(std::size_t count) {
    if (depth_ == made_.size()) made_.push_back({0, count});
    return made_[depth_++].picked;
  }
  /// What was answered in this run, to tell of it.
  std::vector<std::size_t> path() const {
    std::vector<std::size_t> path;
    for (std::size_t i = 0; i < depth_; ++i) path.push_back(made_[i].picked);
    return path;
  }

  /// The next run; false if all have been made.
  bool next() {
    made_.resize(depth_);
    depth_ = 0;
    while (!made_.empty() && made_.back().picked + 1 == made_.back().count) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().picked;
    return true;
  }

 private:
  struct Made {
    std::size_t picked = 0, count = 1;
  };
  std::vector<Made> made_;
  std::size_t depth_ = 0;
};

/// Calls `scenario(choices)` until it returns false, or there is no other way left; returns how
/// often it ran.
template <typename Scenario>
std::size_t explore(Scenario&& scenario) {
  Choices choices;
  std::size_t runs = 0;
  do {
    ++runs;
    if (!scenario(choices)) break;
  } while (choices.next());
  return runs;
}

}  // namespace weft::test
