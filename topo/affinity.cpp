// Which NICs serve which memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <weft/topology.hpp>

#include "topo/cost.hpp"
#include "topo/links.hpp"

namespace weft {
namespace topo {
namespace {

// NICs slower than this part of the fastest among them hold up the end of a transfer more than
// they help with the rest of it (assumed, not measured). By Way::nic_gbps: what the bridges of a
// virtual machine report of the way is often too little.
constexpr double too_slow = 0.5;

// Two links of x8 are a little more or less than one of x16, by how each is rounded.
constexpr double rounding = 1.001;

/// Indices of NICs, ascending: in bus order.
using NicSet = std::vector<std::size_t>;

NicSet without(const NicSet& nics, const NicSet& fewer) {
  NicSet rest;
  std::set_difference(nics.begin(), nics.end(), fewer.begin(), fewer.end(),
                      std::back_inserter(rest));
  return rest;
}

/// The cheapest, and of those the nearest; the end if there is none.
NicSet::const_iterator best_of(const std::vector<Way>& ways, const NicSet& nics) {
  return std::min_element(nics.begin(), nics.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(ways[a].cost, ways[a].level) < std::tie(ways[b].cost, ways[b].level);
  });
}

/// Those below the lowest common place from which a byte is cheapest, that are fast enough.
NicSet nearest(const std::vector<Way>& ways, const NicSet& nics) {
  const auto best = best_of(ways, nics);
  if (best == nics.end()) return {};
  NicSet found;
  double fastest = 0;
  for (const std::size_t nic : nics) {
    if (ways[nic].level > ways[*best].level) continue;
    found.push_back(nic);
    fastest = std::max(fastest, ways[nic].nic_gbps);
  }
  std::erase_if(found, [&](std::size_t nic) { return ways[nic].nic_gbps < too_slow * fastest; });
  return found;
}

/// The bandwidth left on the links on the way.
class Room {
 public:
  explicit Room(const std::vector<Way>& ways) : ways_(ways) {}

  /// Takes the NIC's share of each link, if there is enough left.
  bool take(std::size_t nic) {
    const Way& way = ways_[nic];
    for (const Link& each : way.links)
      if (each.gbps > 0 && used_[each.id] + way.gbps > each.gbps * rounding) return false;
    for (const Link& each : way.links) used_[each.id] += way.gbps;
    return true;
  }

 private:
  const std::vector<Way>& ways_;
  std::map<std::size_t, double> used_;
};

/// As many as the links on the way can carry at once, at least one: the first ones of `order`.
NicSet carried(const std::vector<Way>& ways, const NicSet& order) {
  Room room(ways);
  NicSet taken;
  for (const std::size_t nic : order)
    if (room.take(nic) || taken.empty()) taken.push_back(nic);
  std::sort(taken.begin(), taken.end());
  return taken;
}

/// NICs of different switches by turns, so that the first few are spread.
NicSet by_turns(const Topology& topology, const NicSet& nics) {
  std::map<int, std::size_t> seen;
  std::vector<std::pair<std::size_t, std::size_t>> turns;
  for (const std::size_t nic : nics) turns.emplace_back(seen[topology.nics[nic].pci_switch]++, nic);
  std::sort(turns.begin(), turns.end());
  NicSet order;
  for (const auto& [turn, nic] : turns) order.push_back(nic);
  return order;
}

/// Which NICs serve each device of a kind, all of them at once: of GPUs, or of drives.
class Shares {
 public:
  Shares(const Topology& topology, const std::vector<Position>& devices, const NicSet& nics,
         const NicSet& missing)
      : uses_(topology.nics.size()), shares_(devices.size()) {
    for (const Position& each : devices) ways_.push_back(ways_from(topology, each));
    std::vector<std::size_t> all(shares_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    serve(all, nics);
    if (missing.empty()) return;
    std::vector<std::size_t> unserved;
    std::fill(uses_.begin(), uses_.end(), 0U);
    for (const std::size_t device : all) {
      shares_[device] = without(shares_[device], missing);
      count(shares_[device]);
      if (shares_[device].empty()) unserved.push_back(device);
    }
    serve(unserved, without(nics, missing));
  }

  const NicSet& of(std::size_t device) const { return shares_[device]; }

 private:
  /// Devices with the same NICs near, in the same place, share them. Those with the fewest come
  /// first, as they have no choice, and of those with the same ones the nearer, so that farther
  /// ones take nothing from them.
  void serve(const std::vector<std::size_t>& devices, const NicSet& nics) {
    std::map<std::tuple<std::size_t, int, NicSet>, std::vector<std::size_t>> groups;
    for (const std::size_t device : devices) {
      NicSet near = nearest(ways_[device], nics);
      if (near.empty()) continue;
      // Switches further down come later in their list.
      const int meeting = ways_[device][*best_of(ways_[device], nics)].meeting;
      groups[{near.size(), -meeting, std::move(near)}].push_back(device);
    }
    for (const auto& [key, group] : groups)
      share_out(least_used(std::get<NicSet>(key), group.size()), group);
  }

  /// Those that serve the fewest devices so far, if there is one for each; else all.
  NicSet least_used(const NicSet& nics, std::size_t devices) const {
    unsigned least = uses_[nics.front()];
    for (const std::size_t nic : nics) least = std::min(least, uses_[nic]);
    NicSet found;
    for (const std::size_t nic : nics)
      if (uses_[nic] == least) found.push_back(nic);
    return found.size() >= devices ? found : nics;
  }

  /// Each device gets as long a stretch of the NICs as each other; where they can't be divided
  /// evenly, neighbours share the one in between.
  void share_out(const NicSet& nics, const std::vector<std::size_t>& devices) {
    const std::size_t n = devices.size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t begin = i * nics.size() / n, end = ((i + 1) * nics.size() + n - 1) / n;
      const NicSet stretch(nics.begin() + static_cast<std::ptrdiff_t>(begin),
                           nics.begin() + static_cast<std::ptrdiff_t>(end));
      shares_[devices[i]] = carried(ways_[devices[i]], stretch);
      count(shares_[devices[i]]);
    }
  }

  void count(const NicSet& nics) {
    for (const std::size_t nic : nics) ++uses_[nic];
  }

  std::vector<std::vector<Way>> ways_;  // of each device, to each NIC
  std::vector<unsigned> uses_;          // of each NIC: devices that it serves
  std::vector<NicSet> shares_;          // of each device
};

NicSet serving_node(const Topology& topology, int node, const NicSet& nics, const NicSet& missing) {
  const auto ways = ways_from(topology, {-1, node});
  const NicSet usual = carried(ways, by_turns(topology, nearest(ways, nics)));
  if (missing.empty()) return usual;
  // The usual ones that are left stay, and others follow.
  NicSet order = without(usual, missing);
  if (order.size() == usual.size()) return usual;
  for (const std::size_t nic : by_turns(topology, nearest(ways, without(nics, missing))))
    if (std::find(order.begin(), order.end(), nic) == order.end()) order.push_back(nic);
  return carried(ways, order);
}

NicSet serving_all_nodes(const Topology& topology, const NicSet& nics, const NicSet& missing) {
  std::set<std::size_t> all;
  for (const NumaNode& node : topology.nodes) {
    const NicSet some = serving_node(topology, node.id, nics, missing);
    all.insert(some.begin(), some.end());
  }
  return {all.begin(), all.end()};
}

/// In bus order, each once, without those that are down.
NicSet usable(const Topology& topology, std::span<const std::size_t> nics) {
  std::set<std::size_t> in_order;
  for (const std::size_t nic : nics)
    if (nic < topology.nics.size() && !topology.nics[nic].down) in_order.insert(nic);
  return {in_order.begin(), in_order.end()};
}

bool has_node(const Topology& topology, int id) {
  return std::any_of(topology.nodes.begin(), topology.nodes.end(),
                     [&](const NumaNode& each) { return each.id == id; });
}

template <typename Device>
std::vector<Position> positions_of(const std::vector<Device>& devices) {
  std::vector<Position> positions;
  for (const Device& each : devices) positions.push_back({each.pci_switch, each.numa_node});
  return positions;
}

/// The device of that index; null if there is none.
template <typename Device>
const Device* at(const std::vector<Device>& devices, int index) {
  return index >= 0 && static_cast<std::size_t>(index) < devices.size()
             ? &devices[static_cast<std::size_t>(index)]
             : nullptr;
}

/// The served memory, resolved: of a GPU, a drive's files, of a node, or memory anywhere.
class Served {
 public:
  Served(const Topology& topology, const Place& place) : topology_(topology) {
    if (const Gpu* gpu = at(topology.gpus, place.device))
      is_one_of(positions_of(topology.gpus), place.device, "GPU " + gpu->pci);
    else if (const Drive* drive = at(topology.drives, place.drive))
      is_one_of(positions_of(topology.drives), place.drive, "drive " + drive->name);
    else if (place.device < 0 && place.drive < 0 && has_node(topology, place.numa_node))
      is_of_node(place.numa_node);
  }

  const Position& position() const { return position_; }
  const std::string& name() const { return name_; }

  NicSet nics(const NicSet& usable, const NicSet& missing) const {
    if (!alike_.empty()) return Shares(topology_, alike_, usable, missing).of(index_);
    if (position_.numa_node >= 0)
      return serving_node(topology_, position_.numa_node, usable, missing);
    return serving_all_nodes(topology_, usable, missing);
  }

 private:
  void is_one_of(std::vector<Position> alike, int index, std::string name) {
    alike_ = std::move(alike);
    index_ = static_cast<std::size_t>(index);
    position_ = alike_[index_];
    name_ = std::move(name);
  }

  void is_of_node(int node) {
    position_.numa_node = node;
    name_ = fmt::format("memory of node {}", node);
  }

  const Topology& topology_;
  std::vector<Position> alike_;  // of all devices that it shares the NICs with
  std::size_t index_ = 0;        // its own among them
  Position position_;
  std::string name_ = "memory whose node is not known";
};

std::string reason_for(const Topology& topology, const Served& served, const Affinity& chosen) {
  if (chosen.order.empty()) return "there is no NIC that could be used";
  if (served.position().numa_node < 0 && served.position().pci_switch < 0)
    return fmt::format("spread over all nodes, for {}", served.name());
  const NicCost& first = chosen.order.front();
  switch (first.nearness) {
    case Nearness::pci_switch:
      return fmt::format("below one switch with {}", served.name());
    case Nearness::root_complex:
      return fmt::format("below one root complex with {}", served.name());
    case Nearness::numa_node:
      return fmt::format("in one node with {}", served.name());
    case Nearness::machine:
      break;
  }
  if (topology.nics[first.nic].numa_node < 0)
    return fmt::format("in one machine with {}; no more is known of them", served.name());
  return fmt::format("in another node than {}, which has none that is cheaper", served.name());
}

/// What was made of links on the way to the NICs that serve.
std::vector<std::string> notes_for(const Topology& topology, const std::vector<Way>& ways,
                                   const NicSet& serving) {
  const Links links(topology);
  std::set<std::size_t> uplinks;
  std::vector<std::string> notes;
  for (const std::size_t nic : serving) {
    if (std::string note = links.about(topology.nics[nic]); !note.empty())
      notes.push_back(std::move(note));
    for (const Link& each : ways[nic].links)
      if (is_uplink(each)) uplinks.insert(each.id);
  }
  for (const std::size_t each : uplinks)
    if (std::string note = links.about_uplink(each); !note.empty())
      notes.push_back(std::move(note));
  return notes;
}

}  // namespace
}  // namespace topo

Affinity affinity(const Topology& topology, const Place& place, std::span<const std::size_t> nics,
                  std::span<const std::size_t> missing) {
  using namespace topo;
  const NicSet known = usable(topology, nics);
  const NicSet lost = usable(topology, missing);
  const Served served(topology, place);
  const NicSet serving = served.nics(known, lost);
  NicSet others = without(without(known, lost), serving);
  const auto ways = ways_from(topology, served.position());
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return ways[a].cost < ways[b].cost; });
  Affinity result;
  for (const NicSet& some : {serving, others})
    for (const std::size_t nic : some)
      result.order.push_back({nic, ways[nic].nearness, ways[nic].gbps, ways[nic].cost});
  result.serving = serving.size();
  result.reason = reason_for(topology, served, result);
  result.notes = notes_for(topology, ways, serving);
  return result;
}

}  // namespace weft
