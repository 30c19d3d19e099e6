#pragma once

#include <cstdint>

#include "facts.hpp"

namespace weft::facts {

enum class Speeds : std::uint8_t {
  equal,  ///< All NICs are equally fast, and no link is slower than all NICs below it.
  any,    ///< NICs of any speed, also of unknown speed; links of any speed.
};

/// A machine of some sockets and root complexes, with switches that are nested up to three deep,
/// and some GPUs and NICs; some of it without a NUMA node, some NICs without a place in the PCI
/// tree. The same for the same seed, everywhere.
Machine random_machine(std::uint64_t seed, Speeds speeds);

/// The same machine listed in another order.
Machine shuffled(Machine machine, std::uint64_t seed);

/// The same machine, each NIC of which the system calls something else.
Machine renamed(Machine machine, std::uint64_t seed);

}  // namespace weft::facts
