// Where things lie in the memory of a node: segments of blocks, which may be granted, and of slots,
// which only the node's own transfers use; around each of them guards, which nobody may write to.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/place.hpp>

namespace weft::chaos {

struct SegmentLayout {
  Range whole;  // in the arena
  std::vector<Range> blocks, slots, guards;
};

struct Layout {
  std::vector<SegmentLayout> segments;
  std::uint64_t bytes = 0;
};

/// The same for all nodes.
inline const Layout& layout() {
  static const Layout made = [] {
    constexpr std::uint64_t page = 4096, guard = page + 40;
    Layout layout;
    std::uint64_t at = 0;
    for (int segment = 0; segment < 3; ++segment) {
      SegmentLayout made{{at, 0}, {}, {}, {}};
      const auto place = [&](std::vector<Range>& list, std::uint64_t length) {
        made.guards.push_back({at, guard});
        list.push_back({at + guard, length});
        at += guard + length;
      };
      // Lengths that fit neither pages nor chunks nor words.
      for (const std::uint64_t length : {40'000 + 3, 64 << 10, 200'000 + 1, 500'000 + 7})
        place(made.blocks, length);
      for (int slot = 0; slot < 4; ++slot) place(made.slots, (256 << 10) + 11);
      const std::uint64_t end = (at + guard + page - 1) / page * page;
      made.guards.push_back({at, end - at});
      made.whole.length = end - made.whole.offset;
      layout.segments.push_back(made);
      at = end;
    }
    layout.bytes = at;
    return layout;
  }();
  return made;
}

}  // namespace weft::chaos
