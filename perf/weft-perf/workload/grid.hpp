// Lists and ranges of numbers, as a sweep's options give them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>
#include <weft/error.hpp>

#include "common/units.hpp"

namespace weft::perf {

using tool::Multiples;
using tool::parse_number;

/// "4K:64M:x2" (times 2 from 4 KiB to at most 64 MiB), "1:16:+5" (1, 6, 11, 16), "4K:64M" (as with
/// x2), "1,2,8:32". In the order given. `invalid_argument` for anything else, for a range that runs
/// backwards, and for more than 4096 numbers.
Result<std::vector<std::uint64_t>> parse_grid(std::string_view text, Multiples multiples);

}  // namespace weft::perf
