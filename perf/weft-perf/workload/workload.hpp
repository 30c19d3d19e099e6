// Where the bytes of all operations lie, on both sides. Both work it out for themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>
#include <weft/transfer.hpp>

#include "workload/pattern.hpp"
#include "workload/point.hpp"

namespace weft::perf {

/// Whose memory. The initiator begins all transfers; the target grants what they name.
enum class Side : std::uint8_t { initiator, target };

/// Operation i of the window always moves the same pieces, by `parts` transfers, and with
/// Work::one_buffer all move those of operation 0, the only one that is laid out. What an operation
/// moves has memory that nobody may write to around it.
struct Workload {
  std::vector<Pair> pairs;           ///< Of all transfers, one after the other.
  std::vector<std::uint32_t> first;  ///< Of each transfer in `pairs`, and the end of the last.
  std::uint32_t parts = 1;
  std::uint64_t operation_bytes = 0;
  std::uint64_t initiator_bytes = 0, target_bytes = 0;  ///< Memory needed.

  std::uint64_t bytes_on(Side side) const {
    return side == Side::initiator ? initiator_bytes : target_bytes;
  }
};

/// A side takes no more for one window, however much the machine has.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 44;
/// Nor are operations in flight cut into more pieces.
constexpr std::uint64_t most_pairs = 1 << 24;

/// Fails where the point's KV shape does not exist, or takes more than the above: that is found
/// before anything is laid out. The point was checked.
Result<Workload> lay_out(const Work& work);

/// Of one operation that moves such a cache.
Result<std::uint64_t> bytes_of_request(const KvShape& shape);

/// As many tokens as a block may have, if what a layer keeps of it in one piece (its keys, its
/// values, or its latents) is to have `bytes` at most. `invalid_argument` if not even one fits.
Result<std::uint32_t> tokens_of_block(const KvShape& shape, std::uint64_t bytes);

/// Where the transfers of operation i of the window begin in Workload::first.
std::size_t first_transfer(const Work& work, const Workload& load, std::uint32_t operation);

/// Whether operation i of the window reads.
bool reads(const Work& work, std::uint32_t operation);

/// What one side's memory holds before the first transfer, and after the last; sorted. In both
/// cases all the rest holds canaries.
std::vector<Stretch> before(const Work& work, const Workload& load, Side side, std::uint64_t seed);
std::vector<Stretch> after(const Work& work, const Workload& load, Side side, std::uint64_t seed);

}  // namespace weft::perf
