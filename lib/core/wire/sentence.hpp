// Text for people, on the wire.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::core {

namespace limits {
inline constexpr std::size_t sentence = 1024;  // bytes
}

inline bool is_control_character(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// As it goes out: cut.
inline std::string_view sentence_to(std::string_view text) {
  return text.substr(0, limits::sentence);
}

/// From an untrusted peer: control characters, which could play tricks on a terminal, are replaced.
inline std::string sentence_from(const flatbuffers::String* text) {
  if (text == nullptr) return {};
  std::string out(sentence_to(text->string_view()));
  std::replace_if(out.begin(), out.end(), is_control_character, '?');
  return out;
}

}  // namespace weft::core
