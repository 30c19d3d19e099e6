// Whether this process may have memory that it asks for. Overcommit lets it be mapped, and the
// process is killed when it touches more than its control group has.
#pragma once

#include <filesystem>
#include <weft/memory.hpp>

namespace weft::core {

/// `out_of_memory` if its control groups, or the huge pages of the machine, do not suffice. `root`:
/// where the kernel's files are.
Result<void> check_room(const Memory& memory, const std::filesystem::path& root = "/");

}  // namespace weft::core
