// Which rails register which extents, where none of them may take all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <weft/error.hpp>

namespace weft::core {

/// The NIC has no room for it, or takes no registration of that size.
inline bool is_full(const Error& error) {
  constexpr int no_memory = 12, too_big = 7, no_space = 28;  // ENOMEM, E2BIG, ENOSPC
  const int code = error.fabric_code();
  return code == no_memory || code == too_big || code == no_space;
}

/// Has rails that can stand in for each other register the extents: each of them all, as far as it
/// has room. A rail that is full stops. Rail r of n begins at the r-th n-th of the extents, so that
/// NICs share what is too much for one.
///
/// `has(rail, extent)`: it is registered. `refused(rail, extent)`: it was not, for want of room,
/// and is tried again only where no other rail has the extent. `add(rail, extent)` registers it.
/// Fails with what add() says for another reason than room, or if an extent is left that no rail
/// has.
template <typename Has, typename Refused, typename Add>
Result<void> cover(std::span<const std::size_t> extents, std::span<const std::size_t> rails,
                   Has&& has, Refused&& refused, Add&& add) {
  const auto nobody_has = [&](std::size_t extent) {
    return std::none_of(rails.begin(), rails.end(),
                        [&](std::size_t rail) { return has(rail, extent); });
  };
  const auto any_refused = [&](std::size_t extent) {
    return std::any_of(rails.begin(), rails.end(),
                       [&](std::size_t rail) { return refused(rail, extent); });
  };
  const auto add_to_one = [&](std::size_t extent) {
    Result<void> added;
    for (const std::size_t rail : rails)
      if ((added = add(rail, extent))) break;
    return added;
  };
  // What was refused before has the first go at the room that there is by now.
  for (const std::size_t extent : extents)
    if (nobody_has(extent) && any_refused(extent))
      if (auto added = add_to_one(extent); !added) return added;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::size_t first = i * extents.size() / rails.size();
    for (std::size_t k = 0; k < extents.size(); ++k) {
      const std::size_t extent = extents[(first + k) % extents.size()];
      if (has(rails[i], extent) || refused(rails[i], extent)) continue;
      Result<void> added = add(rails[i], extent);
      if (added) continue;
      if (!is_full(added.error())) return added;
      break;
    }
  }
  for (const std::size_t extent : extents)
    if (nobody_has(extent))
      if (auto added = add_to_one(extent); !added) return added;
  return {};
}

}  // namespace weft::core
