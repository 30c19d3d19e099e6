// Text from outside, such as names in a file, made fit to show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::tool {

/// `text` without anything that a terminal would obey or that changes how the rest is read: control
/// characters, line ends, marks for the direction of text, and bytes that are no UTF-8 become
/// "\x1b" or "\u202e".
std::string printable(std::string_view text);

/// The words in lines of at most `longest` bytes, where no single word is longer.
std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t longest);

}  // namespace weft::tool
