/// @file
/// What a transfer's path must be like: else it is refused, rather than slow in silence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft {

/// Of an engine, of its transfers with one peer, of those of one class, or of one transfer: all of
/// them must hold. A transfer whose path does not keep to them fails at submit() as
/// `policy_refused`, before anything is posted. Paths and their copies: see Path.
struct Policy {
  /// Most copies of each byte from memory to memory, on both sides in sum. Pieces so small that a
  /// provider bounces them (Path::bounced_below) count with that copy.
  std::optional<unsigned> max_copies = {};
  /// No copy that a CPU makes, be it in the kernel; those of a GPU's copy engine may be.
  bool forbid_cpu_copies = false;
  /// Memory of a GPU's is read and written by the NIC itself, or copied straight to the other
  /// side's GPU; never staged in host memory. Host memory is not concerned.
  bool require_gpudirect = false;
  /// The path's limit in Gb/s (Path::gbps) is at least this; a path whose limit is not known is
  /// refused. 0: any.
  double min_gbps = 0;
  /// Providers that may be used, by the names of Config::providers without "^"; empty: all.
  std::vector<std::string> providers = {};

  bool operator==(const Policy&) const = default;
  /// Whether it refuses nothing.
  bool empty() const { return *this == Policy{}; }
};

/// Reads "max_copies=0,forbid_cpu_copies,min_gbps=100,providers=efa+verbs": terms in any order,
/// with commas between them. "forbid_cpu_copies" and "require_gpudirect" may say "=true" or
/// "=false". Hyphens do for underscores. `invalid_argument` says what is wrong with it.
WEFT_API Result<Policy> parse_policy(std::string_view text);

/// The inverse; empty for a policy that refuses nothing.
WEFT_API std::string to_string(const Policy& policy);

}  // namespace weft
