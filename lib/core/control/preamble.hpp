// The first bytes on a control connection, fixed for all versions: they tell a Weft engine from
// anything else, and the versions of the control protocol that it understands: here the wire's
// version is raised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <weft/place.hpp>

namespace weft::core {

struct VersionRange {
  std::uint16_t oldest = 0;
  std::uint16_t newest = 0;
};

/// The versions that this engine understands: the newest version of the protocol, and the one
/// before once that was released (none was yet).
inline constexpr VersionRange spoken_versions{9, 9};

/// "WEFT", oldest, newest (little-endian), and two line ends, which make a server of a line-based
/// protocol answer at once and so show what it is.
inline constexpr std::size_t preamble_size = 12;
using Preamble = std::array<std::byte, preamble_size>;

Preamble write_preamble(VersionRange versions);
/// Whether a preamble may begin with `start` (of any length).
bool may_be_preamble(Bytes start);
/// The versions in a preamble; nothing if it is none.
std::optional<VersionRange> read_preamble(Bytes bytes);
/// The newest version in both ranges.
std::optional<std::uint16_t> agree(VersionRange one, VersionRange other);

/// "version 1", "versions 5..6".
std::string to_string(VersionRange versions);
/// The first line of foreign bytes, fit to be printed: "'HTTP/1.1 400 Bad Request...'".
std::string quote(Bytes bytes);

}  // namespace weft::core
