// What a stretch of memory must hold, byte for byte, or may hold where that can't be known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/place.hpp>

namespace weft::chaos {

/// No stream: bytes of which nothing is known.
inline constexpr std::uint64_t anything = 0;

/// Bytes `from` and following of a stream (see support/pattern.hpp), as they lie in an arena.
struct Stretch {
  std::uint64_t offset = 0;  // in the arena
  std::uint64_t length = 0;
  std::uint64_t stream = 0;
  std::uint64_t from = 0;

  std::uint64_t end() const noexcept { return offset + length; }
};

struct Wrong {
  std::uint64_t at = 0;  // the first wrong byte, in the arena
  std::string text;
};

/// Empty if the memory holds the stretch. `arena`: its start.
std::optional<Wrong> difference(const std::byte* arena, const Stretch& stretch);

/// Layers of streams over each other, the newest on top. A layer whose transfer has not ended as
/// `done` may be there, in part or in whole; one that has certainly is.
class Content {
 public:
  Content() = default;
  Content(std::uint64_t offset, std::uint64_t length, std::uint64_t stream);

  /// Nothing but this stream.
  void refill(std::uint64_t stream);
  void lay(std::uint64_t transfer, const Stretch& stretch);
  /// The layers of this transfer are there, or those of its pieces that begin at `offset`.
  void certain(std::uint64_t transfer, std::optional<std::uint64_t> offset = {});
  /// They are not, nor will be.
  void take_back(std::uint64_t transfer, std::optional<std::uint64_t> offset = {});

  /// What is there for certain, in order of place; empty if a part of it may be one thing or
  /// another.
  std::optional<std::vector<Stretch>> known(std::uint64_t offset, std::uint64_t length) const;
  std::optional<Wrong> wrong(const std::byte* arena) const;

 private:
  struct Layer {
    std::uint64_t transfer = 0;
    Stretch stretch;
    bool certain = false;

    bool of(std::uint64_t asked, const std::optional<std::uint64_t>& offset) const {
      return transfer == asked && (!offset || stretch.offset == *offset);
    }
  };
  /// Calls `each(begin, end, candidates)` for the parts between the edges of layers.
  template <typename Each>
  bool for_parts(std::uint64_t begin, std::uint64_t end, Each&& each) const;

  std::vector<Layer> layers_;
};

}  // namespace weft::chaos
