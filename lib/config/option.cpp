#include "config/option.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace weft::core {
namespace {

/// How many letters must be added, removed or replaced to make one of the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);  // from what was read of `from` to each part of `to`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

const Option* find_option(std::string_view name) {
  const std::span<const Option> table = option_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Option& option) { return option.info->name == name; });
  return found != table.end() ? &*found : nullptr;
}

const OptionInfo* nearest_option(std::string_view name) {
  constexpr std::size_t longest = 64;  // a longer one is no misspelling, and takes time to compare
  if (name.size() > longest) return nullptr;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  const OptionInfo* nearest = nullptr;
  for (const OptionInfo& info : options()) {
    const std::size_t between = distance(name, info.name);
    if (between >= least) continue;
    least = between;
    nearest = &info;
  }
  return nearest;
}

std::string range_text(const OptionInfo& info) {
  return info.most.empty() ? fmt::format("at least {}", info.least)
                           : fmt::format("from {} to {}", info.least, info.most);
}

}  // namespace weft::core
