// Enumerators and other values by the names that people and JSON use.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace weft::core {

/// A row of a table. Where several rows have one value, the first is for printing.
template <typename Value>
using Named = std::pair<std::string_view, Value>;

/// "?" for a value that the table lacks: a peer or a cast may bring one.
template <typename Value>
constexpr std::string_view name_of(std::span<const Named<Value>> table, Value value) noexcept {
  for (const auto& [name, each] : table)
    if (each == value) return name;
  return "?";
}

}  // namespace weft::core
