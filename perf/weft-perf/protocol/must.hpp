/// @file
/// Of measurements that can't go on without what they ask for.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>
#include <weft/error.hpp>

namespace weft::perf {

/// Throws the error's text.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace weft::perf
