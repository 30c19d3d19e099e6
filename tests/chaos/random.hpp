// Decisions from a seed: the same with every standard library.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace weft::chaos {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() { return engine_(); }
  /// From 0 to `end` - 1.
  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace weft::chaos
