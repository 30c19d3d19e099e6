// The providers that this build knows, and how to find and open their NICs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/error.hpp>

#include "endpoint.hpp"

namespace weft::providers {

/// What discovery is asked for.
struct Wanted {
  std::vector<std::string> providers;  // best first; empty: all
  std::string rail_address;            // local IP whose interface carries IP rails
};

/// A NIC that can be opened. Holds libfabric's description of it.
class Nic {
 public:
  virtual ~Nic() = default;
  /// The provider's short name in Weft: "tcp", "shm".
  virtual std::string_view provider() const noexcept = 0;
  /// Opens one more endpoint on it. May block.
  virtual Result<std::unique_ptr<Endpoint>> open() const = 0;
};

struct Found {
  std::vector<Candidate> candidates;             // everything looked at, with reasons
  std::vector<std::shared_ptr<const Nic>> nics;  // those taken, in order of preference
};

/// Looks at all providers of this build. Fails if one that was named can't be had.
Result<Found> discover(const Wanted& wanted);

}  // namespace weft::providers
