// How a peer does, in words.
#pragma once

#include <string_view>
#include <weft/health.hpp>

namespace weft::core {

/// A sentence for the log, without a full stop.
std::string_view words_of(Health health) noexcept;
/// Behind "the deadline passed": why that may be; empty if the peer is well.
std::string_view excuse_of(Health health) noexcept;

}  // namespace weft::core
