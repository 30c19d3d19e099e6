// Whether the shards of a rank share bytes of its memory.
#pragma once

#include <optional>
#include <utility>
#include <weft/weights_plan.hpp>

namespace weft::weights {

/// Two shards of the rank that have a byte in common; nothing if none have. Each shard can be.
Result<std::optional<std::pair<std::size_t, std::size_t>>> shared_bytes(const Rank& rank);

}  // namespace weft::weights
