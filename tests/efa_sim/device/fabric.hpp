// All NICs of all simulated hosts.
#pragma once

#include "nic.hpp"

namespace weft::efa_sim {

class Fabric {
 public:
  Fabric(std::vector<NicDescription> nics, std::uint64_t seed, std::string_view settings = {});

  /// See Settings::apply.
  void configure(std::string_view text);
  bool advance(Time now);
  bool busy() const;
  Counters counters() const;
  /// See RegionTable::of.
  Registrations registrations(pid_t process) const;

  std::size_t nics_per_host() const { return descriptions_.size(); }
  Nic& nic(std::uint32_t host, std::size_t index);
  Nic* find(const Gid& gid);

 private:
  Settings settings_;
  const std::vector<NicDescription> descriptions_;
  const std::uint64_t seed_;
  struct Place {
    std::uint32_t host;
    std::size_t index;
    auto operator<=>(const Place&) const = default;
  };
  std::map<Place, Nic> nics_;
};

}  // namespace weft::efa_sim
