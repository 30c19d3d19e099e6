// What descriptors a program has to work with.
#pragma once

#include <cstdint>

namespace weft::tool {

/// First thing in main. Gives 0, 1 and 2 to nothing at all where they are closed, so that no file
/// or socket gets these numbers and what is printed. What is written to 1 still fails; complaints
/// to 2 are lost, and do not (the library's own place holders refuse both). Takes as many
/// descriptors as the system lets this process have: the usual limit is meant for select().
void take_descriptors();

/// Those that this process may still open, at least; and the limit (ulimit -n).
struct DescriptorRoom {
  std::uint64_t left, limit;
};
DescriptorRoom descriptor_room();

}  // namespace weft::tool
