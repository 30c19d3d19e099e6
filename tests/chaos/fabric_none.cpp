#include <stdexcept>

#include "fabric.hpp"

namespace weft::chaos {

std::unique_ptr<Fabric> efa_fabric() {
  throw std::runtime_error("this build has no software EFA device");
}

}  // namespace weft::chaos
