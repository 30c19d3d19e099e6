/// @file
/// The condition of a peer (Peer::health).
#pragma once

#include <cstdint>
#include <string_view>
#include <weft/export.hpp>

namespace weft {

/// A peer that is not down accepts new transfers and messages, which end by their deadlines.
enum class Health : std::uint8_t {
  down,
  up,
  slow,    ///< Not all of its progress threads ran between two heartbeats: its machine is busy.
  silent,  ///< Nothing was heard for Config::suspect_after. After Config::death_after it is down.
};

WEFT_API std::string_view to_string(Health health) noexcept;

}  // namespace weft
