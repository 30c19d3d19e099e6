#include "common/layout.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace weft::tool {
namespace {

constexpr std::size_t usual_width = 100;
constexpr std::size_t least_width = 40;  // Tables have columns as wide as half of it.

bool breaks_lines = true;

std::size_t terminal_width() {
  winsize terminal{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0;
  return known ? terminal.ws_col : usual_width;
}

/// Bytes of the text that are a line of at most `width` columns: up to a space if there is one.
std::size_t fitting(std::string_view text, std::size_t width) {
  if (columns_of(text) <= width) return text.size();
  std::size_t end = 0, columns = 0, space = text.npos;
  for (; end < text.size() && (columns <= width || space == text.npos); ++end) {
    if (text[end] == ' ') space = end;
    columns += columns_of(text.substr(end, 1));
  }
  return space == text.npos ? text.size() : space;
}

}  // namespace

std::size_t line_width() {
  if (!breaks_lines) return std::numeric_limits<std::size_t>::max();
  const char* told = std::getenv("COLUMNS");
  const std::size_t columns = told == nullptr ? 0 : std::strtoul(told, nullptr, 10);
  return std::max(least_width, columns > 0 ? columns : terminal_width());
}

void never_break_lines() {
  breaks_lines = false;
}

std::size_t columns_of(std::string_view text) {
  const auto begins_character = [](char each) { return (each & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t longest) {
  std::vector<std::string> lines;
  for (const std::string& word : words)
    if (lines.empty() || columns_of(lines.back()) + 1 + columns_of(word) > longest)
      lines.push_back(word);
    else
      lines.back() += " " + word;
  return lines;
}

std::string hanging(std::string_view first, std::string_view text, std::size_t width,
                    std::size_t indent) {
  const std::size_t column = columns_of(first);
  const std::size_t further = column > width / 2 ? indent : column;
  std::string out(first);
  std::size_t used = column;
  for (;;) {
    const std::size_t length = fitting(text, width - std::min(width, used));
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(length);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return out;
    out += std::string(further, ' ');
    used = further;
  }
}

}  // namespace weft::tool
