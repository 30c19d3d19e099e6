// Text from outside, such as names in a file, made fit to show.
#pragma once

#include <string>
#include <string_view>

namespace weft::tool {

/// `text` without anything that a terminal would obey or that changes how the rest is read: control
/// characters, line ends, marks for the direction of text, and bytes that are no UTF-8 become
/// "\x1b" or "\u202e".
std::string printable(std::string_view text);

}  // namespace weft::tool
