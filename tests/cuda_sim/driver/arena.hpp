// The addresses of device memory: a range of the process that no CPU access gets through.
#pragma once

#include <cstddef>
#include <map>

#include "interface/status.hpp"

namespace weft::cuda_sim {

class Arena {
 public:
  /// Throws Failure.
  void reserve();
  /// Addresses with a gap behind them, which were not given out lately: what is freed is not soon
  /// mistaken for what comes after it. Throws Failure.
  Address take(std::size_t bytes);
  void give_back(Address base);
  /// Whether any of the bytes is here.
  bool touches(Address address, std::size_t bytes) const;

 private:
  Address begin_ = 0, end_ = 0, next_ = 0;
  std::map<Address, Address> taken_;  // begin and end
};

}  // namespace weft::cuda_sim
