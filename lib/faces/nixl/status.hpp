// Weft's errors in the words of NIXL's users.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"

namespace weft::nixl {

abi::Status status_of(Code code) noexcept;

/// Writes what failed to the log, within a LogLimit unless debug lines are written, and returns the
/// status for it.
abi::Status refuse(const char* what, const Error& error);

/// A peer that is gone fails thousands of requests: of a kind only the first lines of some seconds
/// are written, and how many were left out stands in the next one. From any thread.
class LogLimit {
 public:
  static constexpr auto period = std::chrono::seconds(10);
  static constexpr std::uint64_t most_lines = 10;

  /// Nothing: it is left out.
  std::optional<std::string> line(const std::string& what, const Error& error,
                                  Clock::time_point now);

 private:
  static constexpr std::size_t most_kinds = 256;  // before old ones are forgotten
  struct Kind {
    Clock::time_point since{};
    std::uint64_t lines = 0, dropped = 0;
  };
  core::Mutex mutex_;
  std::map<std::pair<std::string, Code>, Kind> kinds_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
