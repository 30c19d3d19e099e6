/// @file
/// Conditions for a transfer's path. A path that does not meet them is refused, not silently slow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft {

/// A policy of an engine, of a peer, of a class of transfers, or of one transfer. All policies that
/// concern a transfer must hold; otherwise submit() fails with `policy_refused` before anything is
/// posted. Path describes paths and their copies.
struct Policy {
  /// Largest number of copies of each byte, on both sides together. For pieces so small that a
  /// provider bounces them (Path::bounced_below) that copy counts too.
  std::optional<unsigned> max_copies = {};
  /// No copy by a CPU, in the process or in the kernel. A GPU's copy engine may copy.
  bool forbid_cpu_copies = false;
  /// GPU memory is read and written by the NIC itself, or copied straight to the GPU of the other
  /// side; never staged in host memory. Does not concern host memory.
  bool require_gpudirect = false;
  /// Lowest allowed limit of the path in Gb/s (Path::gbps). A path with an unknown limit is
  /// refused. 0: any.
  double min_gbps = 0;
  /// Allowed providers, by the names in Config::providers without "^". Empty: all.
  std::vector<std::string> providers = {};

  bool operator==(const Policy&) const = default;
  /// Whether it allows every path.
  bool empty() const { return *this == Policy{}; }
};

/// Reads "max_copies=0,forbid_cpu_copies,min_gbps=100,providers=efa+verbs": terms in any order,
/// separated by commas. "forbid_cpu_copies" and "require_gpudirect" may have "=true" or "=false".
/// Hyphens may stand for underscores. Fails with `invalid_argument` and the reason.
WEFT_API Result<Policy> parse_policy(std::string_view text);

/// The inverse; empty for a policy that allows every path.
WEFT_API std::string to_string(const Policy& policy);

}  // namespace weft
