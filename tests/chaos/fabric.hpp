// The network between the nodes, where it can be disturbed.
#pragma once

#include <memory>
#include <string>

#include "random.hpp"

namespace weft::chaos {

class Fabric {
 public:
  virtual ~Fabric() = default;
  /// Makes something go wrong until calm(); returns what, in words.
  virtual std::string disturb(Random& random) = 0;
  virtual void calm() = 0;
};

/// The software EFA device that this process was started over (with-efa). Throws std::runtime_error
/// if there is none.
std::unique_ptr<Fabric> efa_fabric();

}  // namespace weft::chaos
