#include "topo/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {
namespace topo {
namespace {

// Cards are sold in slots of half their speed (x8 for x16), not of less (assumed).
constexpr double least_believed = 0.5;

/// Whole numbers, as encodings make 252.06 Gb/s of a link.
double whole(double gbps) {
  return std::round(gbps);
}

}  // namespace

Links::Links(const Topology& topology) : topology_(topology), uplinks_(topology.switches.size()) {
  const auto count = static_cast<int>(uplinks_.size());
  for (int at = 0; at < count; ++at) {
    // Parents come first.
    const int above = topology.switches[static_cast<std::size_t>(at)].above;
    if (above >= 0 && above < at)
      uplinks_[static_cast<std::size_t>(at)].level =
          uplinks_[static_cast<std::size_t>(above)].level + 1;
  }
  for (const Nic& nic : topology.nics) {
    if (nic.down) continue;
    int last = count;
    for (int at = nic.pci_switch; at >= 0 && at < last;
         last = std::exchange(at, topology.switches[static_cast<std::size_t>(at)].above)) {
      double& fastest = uplinks_[static_cast<std::size_t>(at)].fastest;
      fastest = std::max(fastest, gbps_of(nic));
    }
  }
}

Report Links::of_nic(const Nic& nic) const {
  if (nic.gbps <= 0 || nic.link_gbps <= 0 || nic.link_gbps >= nic.gbps) return Report::plausible;
  return nic.link_gbps < least_believed * nic.gbps ? Report::doubted : Report::narrow;
}

double Links::gbps_of(const Nic& nic) const {
  return of_nic(nic) == Report::narrow ? nic.link_gbps : nic.gbps;
}

Report Links::of_uplink(std::size_t pci_switch) const {
  const Uplink& own = uplinks_[pci_switch];
  const double reported = topology_.switches[pci_switch].uplink_gbps;
  if (own.level == 0 || reported <= 0 || reported >= own.fastest) return Report::plausible;
  for (std::size_t other = 0; other < uplinks_.size(); ++other)
    if (uplinks_[other].level == own.level && uplinks_[other].fastest == own.fastest &&
        topology_.switches[other].uplink_gbps >= own.fastest)
      return Report::real;
  return Report::doubted;
}

double Links::uplink_gbps(std::size_t pci_switch) const {
  return of_uplink(pci_switch) == Report::doubted ? 0 : topology_.switches[pci_switch].uplink_gbps;
}

std::string Links::about(const Nic& nic) const {
  switch (of_nic(nic)) {
    case Report::narrow:
      return fmt::format(
          "the PCIe link of NIC {} reports {} Gb/s: the NIC counts as that, not as {} Gb/s",
          nic.name, whole(nic.link_gbps), nic.gbps);
    case Report::doubted:
      return fmt::format(
          "the PCIe link of NIC {} reports {} Gb/s, less than half of the NIC's {} Gb/s: not "
          "believed",
          nic.name, whole(nic.link_gbps), nic.gbps);
    case Report::plausible:
    case Report::real:
      break;
  }
  return {};
}

std::string Links::about_uplink(std::size_t pci_switch) const {
  const Report report = of_uplink(pci_switch);
  if (report == Report::plausible) return {};
  const PciSwitch& each = topology_.switches[pci_switch];
  return fmt::format(
      "the uplink of switch {} reports {} Gb/s, less than one NIC behind it ({} "
      "Gb/s): {}",
      each.pci, whole(each.uplink_gbps), whole(uplinks_[pci_switch].fastest),
      report == Report::real ? "believed, since a switch like it reports more" : "not believed");
}

}  // namespace topo

std::vector<std::string> notes_on_links(const Topology& topology) {
  const topo::Links links(topology);
  std::vector<std::string> notes;
  const auto note = [&](std::string text) {
    if (!text.empty()) notes.push_back(std::move(text));
  };
  for (const Nic& nic : topology.nics) note(links.about(nic));
  for (std::size_t at = 0; at < topology.switches.size(); ++at) note(links.about_uplink(at));
  return notes;
}

}  // namespace weft
