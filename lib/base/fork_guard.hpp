// Notices that the process was forked: neither libfabric nor threads survive that.
#pragma once

#include <cstdint>
#include <weft/error.hpp>

namespace weft::core {

/// How often this process image was forked since it was started; cheap enough for every call.
std::uint64_t fork_generation() noexcept;

/// The one error that every call gives in a forked child.
Error forked_error();

}  // namespace weft::core
