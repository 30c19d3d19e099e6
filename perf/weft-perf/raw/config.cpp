#include "raw/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace weft::perf {

Result<void> check(const RawConfig& config) {
  if (config.size == 0 || config.window == 0 || config.endpoint_window == 0 ||
      config.endpoints == 0 || config.endpoints > max_endpoints)
    return fail(
        Code::invalid_argument,
        fmt::format("size and windows start at 1, and endpoints go from 1 to {}", max_endpoints));
  return {};
}

std::size_t positions_of(const RawConfig& config) {
  if (config.operation == RawOperation::message) return config.endpoints * config.endpoint_window;
  if (config.buffer_bytes == 0) return config.window;
  return std::max<std::size_t>(1, config.buffer_bytes / config.size);
}

std::uint64_t memory_of(const RawConfig& config) {
  // Ours is a quarter of it; the rest is for what libfabric keeps of an operation.
  constexpr std::uint64_t notes = 1024;
  std::uint64_t bytes = 0, noted = 0, all = 0;
  if (__builtin_mul_overflow(std::uint64_t{positions_of(config)}, config.size, &bytes) ||
      __builtin_mul_overflow(config.endpoints * notes, config.endpoint_window, &noted) ||
      __builtin_add_overflow(bytes, noted, &all))
    return std::numeric_limits<std::uint64_t>::max();
  return all;
}

}  // namespace weft::perf
