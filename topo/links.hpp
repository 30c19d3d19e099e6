// What is made of the speeds that PCIe links report: buses of virtual machines often report less
// than there is.
#pragma once

#include <string>
#include <vector>
#include <weft/topology.hpp>

namespace weft::topo {

/// What the tree makes of a link's report.
enum class Report {
  plausible,  // or none
  narrow,     // less than the NIC has, and believed: the NIC counts as its link
  real,       // less than one NIC behind an uplink, and believed: a switch like it reports more
  doubted,    // not believed
};

/// The reports of a topology's links, judged by the rest of the tree.
class Links {
 public:
  explicit Links(const Topology& topology);

  /// A NIC's own link is believed down to half of the NIC's speed.
  Report of_nic(const Nic& nic) const;
  /// The NIC's speed, or that of its link if that is less and believed. 0: unknown.
  double gbps_of(const Nic& nic) const;

  /// An uplink that reports less than the fastest NIC behind it is believed only where another
  /// switch of the same level, with as fast a NIC behind it, reports enough.
  Report of_uplink(std::size_t pci_switch) const;
  /// 0: unknown, or not believed.
  double uplink_gbps(std::size_t pci_switch) const;

  /// Sentences without a full stop; empty for a plausible report.
  std::string about(const Nic& nic) const;
  std::string about_uplink(std::size_t pci_switch) const;

 private:
  struct Uplink {
    unsigned level = 0;  // switches above it
    double fastest = 0;  // of the NICs behind it, Gb/s; 0: none of known speed
  };

  const Topology& topology_;
  std::vector<Uplink> uplinks_;  // of each switch
};

}  // namespace weft::topo
