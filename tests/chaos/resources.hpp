// What this process holds of the system.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::chaos {

struct Resources {
  std::int64_t threads = 0, descriptors = 0, registrations = 0;

  /// As they are now.
  static Resources held();
  bool operator==(const Resources&) const = default;
  /// More of something than before.
  bool beyond(const Resources& before) const {
    return threads > before.threads || descriptors > before.descriptors ||
           registrations > before.registrations;
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resources, threads, descriptors, registrations)

/// What the descriptors of this process stand for.
std::vector<std::string> descriptor_names();
/// Bytes of memory that are really there.
std::int64_t resident_bytes();

/// Ends one of the TCP connections of this process, as a broken network would: that of number
/// `pick`, counted around. False if there is none.
bool cut_connection(std::uint64_t pick);

}  // namespace weft::chaos
