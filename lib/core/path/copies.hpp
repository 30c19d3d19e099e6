// The copies that were made of the bytes that a path has carried.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/path.hpp>
#include <weft/transfer.hpp>

namespace weft::core {

/// `own`: bytes that this engine has copied, or had copied, on the way.
std::vector<Report::Copied> copies_on(const Path& path, std::uint64_t carried, std::uint64_t own);

}  // namespace weft::core
