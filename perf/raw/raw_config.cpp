#include "raw_config.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  if (config.buffer_bytes == 0 || config.operation == RawOperation::message) return config.window;
  return std::max<std::size_t>(1, config.buffer_bytes / config.size);
}

}  // namespace weft::perf
