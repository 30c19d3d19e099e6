// A simulated GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "interface/application.hpp"

namespace weft::cuda_sim {

struct Device {
  Ordinal ordinal;
  std::string pci;
  std::size_t memory;
  Status lost = success;      // what all calls give once it is gone
  Context primary = nullptr;  // made when it is first retained, and kept
  unsigned retained = 0;

  std::string name() const { return "Weft simulated GPU " + std::to_string(ordinal); }
  /// The same in every process, as IPC needs it.
  Uuid uuid() const;
};

}  // namespace weft::cuda_sim
