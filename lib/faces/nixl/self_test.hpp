// Whether a libnixl that nobody compared with abi.hpp has the same interface all the same: tried in
// a process of its own, so that a crash is that one's.
#pragma once

#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "nixl/libnixl.hpp"

namespace weft::nixl {

/// A Python, this process's, loads the library by its wheel and opens this plug-in as two agents,
/// of which one writes to the other and notifies it: each call of the interface is made, and what
/// arrives is compared. `protocol_mismatch` with what went wrong. Done once for each process; takes
/// a second or two, and `self_test_time` at most.
Result<void> self_test(const LibNixl& library, const std::string& backend);
/// The same each time it is called, by that program.
Result<void> run_self_test(const std::string& python, const LibNixl& library,
                           const std::string& backend, Nanoseconds patience);

/// Far more than it takes; a machine may be busy starting servers.
inline constexpr auto self_test_time = std::chrono::seconds(30);

}  // namespace weft::nixl
