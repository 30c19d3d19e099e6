// Text in lines that fit the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tool {

/// Columns of a line: $COLUMNS, else the width of the terminal at standard output, else 100.
std::size_t line_width();
/// From now on lines are never broken.
void never_break_lines();

/// Columns that UTF-8 text takes, one for each character.
std::size_t columns_of(std::string_view text);

/// The words in lines of at most `longest` columns, where no single word is longer.
std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t longest);

/// `first`, then `text` broken at its spaces: its further lines begin below its first column, or
/// after `indent` spaces where that column is too far to the right. Ends with a newline.
std::string hanging(std::string_view first, std::string_view text, std::size_t width = line_width(),
                    std::size_t indent = 4);

}  // namespace weft::tool
