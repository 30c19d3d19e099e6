// Where memory lies, as the command line says it: "host", "shared", "node:1", "gpu:3".
#pragma once

#include <string>
#include <string_view>
#include <weft/place.hpp>

namespace weft::tool {

/// "host", "node:1", "gpu:3"; `invalid_argument` for anything else.
Result<Place> parse_place(std::string_view text);

/// Memory that peers of one host map, and copy to and from without the kernel (Memory::shared).
constexpr std::string_view shared_memory = "shared";

/// For the help of options that take any of them.
constexpr const char* kinds_of_memory =
    "host (pages of its own), shared (a file in memory, which peers of one host map), node:N, "
    "gpu:N (as CUDA counts; its nearest NICs are opened)";

/// `invalid_argument` unless it is of those kinds.
Result<void> check_memory(const std::string& memory);

/// The GPU that it is of, as CUDA counts; -1: none.
int gpu_of(const std::string& memory);

}  // namespace weft::tool
