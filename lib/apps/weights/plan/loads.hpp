// What each rank has to send and to receive.
#pragma once

#include <span>
#include <vector>
#include <weft/weights_plan.hpp>

#include "weights/plan/catalog.hpp"

namespace weft::weights {

/// Bytes in a second over all NICs of a rank, in each direction.
double nic_speed(const Rank& rank) noexcept;

class Loads {
 public:
  explicit Loads(const World& world);

  /// Whether two ranks reach each other without a NIC.
  bool on_host(Party from, std::uint32_t to) const noexcept;
  /// Equal for ranks of one host.
  std::uint32_t host_of(Party party) const noexcept;

  /// The holder that sends to a subscriber: one on its host, else the one whose NICs have the
  /// least to do.
  Holder sender(std::span<const Holder> publishers, std::uint32_t to) const noexcept;
  void sends(Party from, std::uint32_t to, std::uint64_t bytes) noexcept;

 private:
  struct Busy {
    std::uint32_t host = 0;
    double speed = 0;
    double by_nics = 0;  // seconds
    double on_host = 0;  // bytes
  };
  const Busy& busy(Party party) const noexcept;

  std::vector<Busy> publishers_, subscribers_;
};

}  // namespace weft::weights
