#include "topo/cost.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "topo/links.hpp"

namespace weft::topo {
namespace {

constexpr double other_root_complex = 1.5;  // see Way::cost
constexpr unsigned slit_local = 10;         // ACPI 6.5, 5.2.17
constexpr unsigned slit_usual_remote = 20;  // Linux, include/linux/topology.h: REMOTE_DISTANCE

// Two links of UPI with 10.4 GT/s, 20.8 GB/s each way each: the least that Intel's two-socket Xeons
// have had since 2017 (AMD's have more).
constexpr double socket_link_gbps = 2 * 20.8 * 8;

constexpr std::size_t beyond_switches = std::size_t{1} << 32;

std::size_t link_of_sockets(int a, int b) {
  const auto low = static_cast<std::uint16_t>(std::min(a, b)),
             high = static_cast<std::uint16_t>(std::max(a, b));
  return beyond_switches + (std::size_t{low} << 16) + high;
}

/// A switch and all above it, lowest first.
std::vector<int> chain_from(const Topology& topology, int pci_switch) {
  std::vector<int> chain;
  const auto count = static_cast<int>(topology.switches.size());
  // Parents come first, so that no chain has a loop.
  for (int last = count; pci_switch >= 0 && pci_switch < last;) {
    chain.push_back(pci_switch);
    last = pci_switch;
    pci_switch = topology.switches[static_cast<std::size_t>(pci_switch)].above;
  }
  return chain;
}

std::size_t index_of_node(const Topology& topology, int id) {
  const auto found = std::find_if(topology.nodes.begin(), topology.nodes.end(),
                                  [&](const NumaNode& each) { return each.id == id; });
  return static_cast<std::size_t>(found - topology.nodes.begin());
}

constexpr double unlimited = std::numeric_limits<double>::max();

/// The slowest speed that is known.
double slowest_known(const std::vector<Nic>& nics) {
  double slowest = unlimited;
  for (const Nic& each : nics)
    if (each.gbps > 0) slowest = std::min(slowest, each.gbps);
  return slowest;
}

/// The address of a NIC's card: without the function.
std::string_view card_of(const Nic& nic) {
  return std::string_view(nic.pci).substr(0, nic.pci.find('.'));
}

/// Of the card's link, when all NICs of the card that are up have as much.
double share_of_link(const std::vector<Nic>& nics, const Nic& nic) {
  if (nic.link_gbps <= 0) return unlimited;
  const auto sharing = std::count_if(nics.begin(), nics.end(), [&](const Nic& each) {
    return !each.down && each.kind == nic.kind && card_of(each) == card_of(nic);
  });
  return nic.link_gbps / static_cast<double>(std::max<std::ptrdiff_t>(1, sharing));
}

class Finder {
 public:
  Finder(const Topology& topology, const Position& from)
      : topology_(topology),
        from_(from),
        links_(topology),
        own_chain_(chain_from(topology, from.pci_switch)),
        slowest_(slowest_known(topology.nics)) {}

  Way way_to(const Nic& nic) const {
    Way way;
    const auto chain = chain_from(topology_, nic.pci_switch);
    const auto meeting =
        std::find_first_of(own_chain_.begin(), own_chain_.end(), chain.begin(), chain.end());
    for (auto each = own_chain_.begin(); each != meeting; ++each) add_uplink(way, *each);
    for (const int each : chain) {
      if (meeting != own_chain_.end() && each == *meeting) break;
      add_uplink(way, each);
    }
    way.level = static_cast<unsigned>(meeting - own_chain_.begin());
    double times = 1;
    if (meeting != own_chain_.end()) {
      way.meeting = *meeting;
      const bool root = topology_.switches[static_cast<std::size_t>(*meeting)].above < 0;
      way.nearness = root ? Nearness::root_complex : Nearness::pci_switch;
    } else {
      times = other_root_complex * cross_nodes(way, nic.numa_node);
    }
    way.gbps = way.nic_gbps = speed_of(nic);
    for (const Link& each : way.links) {
      if (each.gbps <= 0) continue;
      way.gbps = std::min(way.gbps, each.gbps);
      if (is_uplink(each) && links_.of_uplink(each.id) == Report::real)
        way.nic_gbps = std::min(way.nic_gbps, each.gbps);
    }
    way.cost = times / way.gbps;
    if (nic.gbps > 0) way.gbps = std::min(way.gbps, links_.gbps_of(nic));
    return way;
  }

 private:
  double speed_of(const Nic& nic) const {
    if (nic.gbps > 0) return nic.gbps;
    const double guess = std::min(share_of_link(topology_.nics, nic), slowest_);
    return guess < unlimited ? guess : 1;
  }

  void add_uplink(Way& way, int index) const {
    const auto at = static_cast<std::size_t>(index);
    if (topology_.switches[at].above >= 0) way.links.push_back({at, links_.uplink_gbps(at)});
  }

  /// How many times as far it is to that node; adds to the level and the links.
  double cross_nodes(Way& way, int to) const {
    const std::size_t a = index_of_node(topology_, from_.numa_node),
                      b = index_of_node(topology_, to), none = topology_.nodes.size();
    if (a == b && a != none) {
      way.nearness = Nearness::numa_node;
      return 1;
    }
    unsigned distance = slit_usual_remote;
    if (a != none && b != none) {
      const NumaNode& own = topology_.nodes[a];
      if (b < own.distances.size()) distance = std::max(slit_local, own.distances[b]);
      const int other = topology_.nodes[b].package;
      if (own.package != other)
        way.links.push_back({link_of_sockets(own.package, other), socket_link_gbps});
    }
    way.nearness = Nearness::machine;
    way.level += distance;
    return static_cast<double>(distance) / slit_local;
  }

  const Topology& topology_;
  const Position from_;
  const Links links_;
  const std::vector<int> own_chain_;
  const double slowest_;
};

}  // namespace

bool is_uplink(const Link& link) {
  return link.id < beyond_switches;
}

std::vector<Way> ways_from(const Topology& topology, const Position& from) {
  const Finder finder(topology, from);
  std::vector<Way> ways;
  ways.reserve(topology.nics.size());
  for (const Nic& nic : topology.nics) ways.push_back(finder.way_to(nic));
  return ways;
}

}  // namespace weft::topo
