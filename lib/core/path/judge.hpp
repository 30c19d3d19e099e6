// Whether a path keeps to a policy.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <weft/path.hpp>
#include <weft/policy.hpp>

namespace weft::core {

/// The reason why the policy rejects the path, to be read behind "the policy "; empty if none.
/// `smallest_piece`: bytes of the smallest piece to be moved.
std::string reject_reason(const Policy& policy, const Path& path,
                          std::uint64_t smallest_piece = std::numeric_limits<std::uint64_t>::max());

}  // namespace weft::core
