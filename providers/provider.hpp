// The providers that this build knows, and how to find and open their NICs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/error.hpp>

#include "providers/endpoint.hpp"
#include "providers/select/selection.hpp"

namespace weft::providers {

/// A NIC that can be opened. Holds libfabric's description of it.
class Nic {
 public:
  virtual ~Nic() = default;
  /// The provider's short name in Weft: "tcp", "shm".
  virtual std::string_view provider() const noexcept = 0;
  /// Opens one more endpoint on it. May block.
  virtual Result<std::unique_ptr<Endpoint>> open() const = 0;
};

/// A NIC that was seen, and how to open it; null where there is none.
struct Seen {
  FoundNic found_nic;
  std::shared_ptr<const Nic> nic;
};

/// A NIC that was taken.
struct Taken {
  std::shared_ptr<const Nic> nic;
  std::size_t candidate = 0;  // its place among the candidates
};

struct Found {
  std::vector<Candidate> candidates;  // everything looked at, with reasons
  std::vector<Taken> nics;            // in order of preference
};

/// Looks at the providers of this build. Fails if one that was named can't be had.
Result<Found> discover(const Wanted& wanted);

/// Why a slower way is taken than this machine seems to have; empty if none is, or if that is what
/// was asked for. `taken`: the providers in use.
std::string fallback(const Wanted& wanted, const std::vector<std::string>& taken);

}  // namespace weft::providers
