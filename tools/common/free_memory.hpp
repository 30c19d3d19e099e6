// How much memory a process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::tool {

/// In bytes: what the system and the process's control group have left. Taking more would succeed
/// at first and have the process killed later. Nothing where it can't be told.
std::optional<std::uint64_t> free_memory();

}  // namespace weft::tool
