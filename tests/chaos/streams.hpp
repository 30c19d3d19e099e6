// Streams of bytes, each used for one thing only: so that bytes in the wrong place tell where they
// come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace weft::chaos {

class Streams {
 public:
  explicit Streams(std::uint64_t seed) : seed_(seed) {}
  /// A new one; `what` it is used for.
  std::uint64_t fresh(std::string what);
  /// What the bytes at a place of an arena are of, in words; takes a moment.
  std::string origin(const std::byte* arena, std::uint64_t at) const;

 private:
  static constexpr std::size_t remembered = 1000;
  struct Stream {
    std::uint64_t id;
    std::string what;
  };
  const std::uint64_t seed_;
  std::uint64_t count_ = 0;
  std::deque<Stream> latest_;
};

}  // namespace weft::chaos
