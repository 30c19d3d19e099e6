// Which rails register which extents, where none of them may take all.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <weft/error.hpp>

namespace weft::core {

/// The NIC has no room for it, or takes no registration of that size.
inline bool is_full(const Error& error) {
  constexpr int no_memory = 12, too_big = 7, no_space = 28;  // ENOMEM, E2BIG, ENOSPC
  const int code = error.fabric_code();
  return code == no_memory || code == too_big || code == no_space;
}

/// Has each of `rails` rails register each of the extents, as far as it can. A rail that is full
/// stops. Rail r of n begins at the r-th n-th of the extents, so that NICs share what is too much
/// for one.
///
/// `registered(rail, extent)`: it is, or has been refused before. `add(rail, extent)` registers it.
/// Returns the first refusal for another reason.
template <typename Registered, typename Add>
Result<void> spread(std::span<const std::size_t> extents, std::size_t rails,
                    Registered&& registered, Add&& add) {
  for (std::size_t rail = 0; rail < rails; ++rail) {
    const std::size_t first = rail * extents.size() / rails;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::size_t extent = extents[(first + i) % extents.size()];
      if (registered(rail, extent)) continue;
      Result<void> added = add(rail, extent);
      if (added) continue;
      if (!is_full(added.error())) return added;
      break;
    }
  }
  return {};
}

}  // namespace weft::core
