// Copies, and what else touches memory on a stream.
#pragma once

#include <optional>

#include "driver/work.hpp"

namespace weft::cuda_sim {

/// What a signature says of the two sides of a copy; either may be any where it says nothing.
struct Sides {
  bool target_on_device = false, source_on_device = false;
};

/// Each checks its addresses and throws Failure for those that the driver refuses.
Work make_copy(Address target, Address source, std::size_t bytes, Sides sides = {});
Work make_set(Address target, unsigned char value, std::size_t bytes);
Work make_wait_value(Address address, std::uint64_t value, unsigned flags);
Work make_write_value(Address address, std::uint64_t value, unsigned flags);

}  // namespace weft::cuda_sim
