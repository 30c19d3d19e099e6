#include "config/option.hpp"

#include <algorithm>

#include "base/edit_distance.hpp"

namespace weft::core {

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
    const std::size_t between = edit_distance(name, info.name);
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
