// What a campaign has done, in numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace weft::chaos {

struct Counts {
  std::map<std::string, std::uint64_t> ends;      // of transfers, by state
  std::map<std::string, std::uint64_t> errors;    // of those that failed, by code
  std::map<std::string, std::uint64_t> refusals;  // of submissions, by code
  std::map<std::string, std::uint64_t> steps, faults;
  std::uint64_t submitted = 0, bytes = 0, signals = 0, signals_failed = 0;
  std::uint64_t revoked = 0, quarantined = 0, not_fenced = 0, released = 0, not_released = 0;
  std::uint64_t imports = 0, imports_failed = 0, lives = 0, abandoned = 0;
  std::uint64_t checks = 0, bytes_checked = 0;
  std::int64_t slowest_end = 0, slowest_revoke = 0;  // milliseconds
  std::uint64_t kept_one = 0;                        // closings with a descriptor too many
  std::int64_t largest = 0;                          // resident bytes of a node, all closed

  std::string words(std::chrono::duration<double> time) const;
};

}  // namespace weft::chaos
