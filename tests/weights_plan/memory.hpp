// Plain memory in the place of ranks, and a plan carried through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <weft/weights_plan.hpp>

namespace weft::weights::test {

/// A byte that depends on the tensor, the element and the byte's place in it.
std::byte pattern(const std::string& tensor, std::uint64_t element, std::uint64_t byte) noexcept;

/// The segments of one rank. Bytes of the gaps between shards are `gap`.
class Memory {
 public:
  static constexpr std::byte gap{0xaa};

  explicit Memory(const Rank& rank);

  void fill(const Rank& rank);
  std::byte& at(std::uint32_t segment, std::uint64_t offset) {
    return segments_.at(segment).at(offset);
  }
  /// What is wrong: a byte of a shard, or a gap that was written. Empty: nothing.
  std::string compare(const Rank& rank) const;

 private:
  std::map<std::uint32_t, std::vector<std::byte>> segments_;
};

/// Carries out the plan in its order, and checks what Plan promises: each byte is written once;
/// what is passed on has arrived with the hop before; totals are right. Returns what is wrong.
std::string carry(const World& world, const Plan& plan);

}  // namespace weft::weights::test
