#include "common/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace weft::tool {
namespace {

/// One character of UTF-8; `length` 0: these bytes are none.
struct Character {
  std::uint32_t point = 0;
  std::size_t length = 0;
};

std::size_t length_by_lead(std::uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // C0 and C1 would begin a longer form of an ASCII character.
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/// By its length, the smallest that may be written so.
constexpr std::array<std::uint32_t, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};

Character first_character(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text.front());
  const std::size_t length = length_by_lead(lead);
  if (length == 0 || length > text.size()) return {};
  std::uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
  for (const char next : text.substr(1, length - 1)) {
    const auto byte = static_cast<std::uint8_t>(next);
    if ((byte & 0xc0) != 0x80) return {};
    point = point << 6 | (byte & 0x3f);
  }
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (point < smallest[length] || point > 0x10ffff || surrogate) return {};
  return {point, length};
}

struct Span {
  std::uint32_t first, last;
};

constexpr std::array obeyed = {
    Span{0x00, 0x1f},       Span{0x7f, 0x9f},      // control characters
    Span{0xad, 0xad},       Span{0x61c, 0x61c},    // not seen; Arabic letter mark
    Span{0x200b, 0x200f},                          // of no width, direction of text
    Span{0x2028, 0x202e},                          // line ends, direction of text
    Span{0x2060, 0x206f},                          // of no width, direction of text
    Span{0xfeff, 0xfeff},   Span{0xfff9, 0xfffb},  // byte order, annotations
    Span{0xe0000, 0xe0fff},                        // tags
};

bool is_safe(std::uint32_t point) {
  return std::none_of(obeyed.begin(), obeyed.end(),
                      [&](const Span& each) { return point >= each.first && point <= each.last; });
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const auto [point, length] = first_character(text);
    if (length > 0 && is_safe(point))
      safe += text.substr(0, length);
    else if (length <= 1)
      safe += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text.front()));
    else
      safe += fmt::format("\\u{:04x}", point);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

}  // namespace weft::tool
