// Threads that work on requests side by side.
#pragma once

#include <functional>
#include <weft/error.hpp>

namespace weft::tool {

/// Runs `work` for the numbers 0 to `count` - 1 on `threads` threads, and waits for all. After the
/// first failure no further number is started; `on_failure` makes those under way end early, and
/// returns that failure as it shall be reported.
Result<void> in_parallel(std::uint64_t count, unsigned threads,
                         const std::function<Result<void>(std::uint64_t)>& work,
                         const std::function<Error(Error)>& on_failure);

}  // namespace weft::tool
