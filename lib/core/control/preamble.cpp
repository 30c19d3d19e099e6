#include "control/preamble.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

namespace weft::core {
namespace {

constexpr std::string_view magic = "WEFT";
constexpr std::string_view line_ends = "\r\n\r\n";
constexpr std::size_t quoted_bytes = 32;

void put(Preamble& to, std::size_t at, std::uint16_t value) {
  to[at] = static_cast<std::byte>(value & 0xff);
  to[at + 1] = static_cast<std::byte>(value >> 8);
}

std::uint16_t get(Bytes from, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(from[at]) |
                                    std::to_integer<unsigned>(from[at + 1]) << 8);
}

}  // namespace

Preamble write_preamble(VersionRange versions) {
  Preamble out;
  std::memcpy(out.data(), magic.data(), 4);
  put(out, 4, versions.oldest);
  put(out, 6, versions.newest);
  std::memcpy(out.data() + 8, line_ends.data(), 4);
  return out;
}

bool may_be_preamble(Bytes start) {
  const Bytes expected = std::as_bytes(std::span(magic));
  const auto size = static_cast<std::ptrdiff_t>(std::min(start.size(), expected.size()));
  return std::equal(start.begin(), start.begin() + size, expected.begin());
}

std::optional<VersionRange> read_preamble(Bytes bytes) {
  if (bytes.size() < preamble_size || !may_be_preamble(bytes) ||
      std::memcmp(bytes.data() + 8, line_ends.data(), 4) != 0)
    return std::nullopt;
  const VersionRange versions{get(bytes, 4), get(bytes, 6)};
  if (versions.oldest > versions.newest) return std::nullopt;
  return versions;
}

std::optional<std::uint16_t> agree(VersionRange one, VersionRange other) {
  const std::uint16_t newest = std::min(one.newest, other.newest);
  if (newest < std::max(one.oldest, other.oldest)) return std::nullopt;
  return newest;
}

std::string to_string(VersionRange versions) {
  return versions.oldest == versions.newest
             ? fmt::format("version {}", versions.newest)
             : fmt::format("versions {}..{}", versions.oldest, versions.newest);
}

std::string quote(Bytes bytes) {
  std::string out = "'";
  std::size_t taken = 0;
  for (; taken < std::min(bytes.size(), quoted_bytes); ++taken) {
    const auto byte = std::to_integer<unsigned>(bytes[taken]);
    if (byte == '\r' || byte == '\n') break;
    const bool plain = byte >= 0x20 && byte < 0x7f;
    out += plain ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
  }
  return out + (taken < bytes.size() ? "...'" : "'");
}

}  // namespace weft::core
