#include "rail/locality.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

bool contains(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// By its PCI address, else by its name, else by that of its network interface.
std::optional<std::size_t> find_nic(const Topology& topology, const std::string& pci,
                                    const std::string& name) {
  const auto& nics = topology.nics;
  const auto same_name = [&](const Nic& nic) { return nic.name == name; };
  auto found = std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) {
    return !pci.empty() && nic.pci == pci && same_name(nic);
  });
  if (found == nics.end())
    found = std::find_if(nics.begin(), nics.end(),
                         [&](const Nic& nic) { return !pci.empty() && nic.pci == pci; });
  if (found == nics.end()) found = std::find_if(nics.begin(), nics.end(), same_name);
  if (found == nics.end())
    found = std::find_if(nics.begin(), nics.end(),
                         [&](const Nic& nic) { return !name.empty() && nic.interface == name; });
  if (found == nics.end()) return std::nullopt;
  return static_cast<std::size_t>(found - nics.begin());
}

/// Read once for all engines: what is soldered in does not move, and reading it takes some ten
/// milliseconds.
Result<Topology> this_machine() {
  static const auto& machine = *new Result<Topology>(load_topology());
  return machine ? machine : load_topology();
}

}  // namespace

Result<Locality> Locality::look(const Config& config) {
  Locality here;
  here.nodes_ = topo::usable_nodes();
  auto topology = config.topo_xml.empty() ? this_machine() : load_topology(config.topo_xml);
  if (topology) {
    here.topology_ = std::move(*topology);
  } else if (!config.topo_xml.empty()) {
    return fail(std::move(topology.error()));
  } else {
    log(LogLevel::warning, "all memory counts as equally near: {}", topology.error().to_string());
  }
  for (const std::string& each : config.gpus) {
    auto gpu = find_gpu(here.topology_, each);
    if (!gpu) return fail(std::move(gpu.error()));
    if (!contains(here.gpus_, *gpu)) here.gpus_.push_back(*gpu);
  }
  return here;
}

Topology with_candidates(Topology topology, std::span<const Candidate> candidates) {
  std::set<std::string> unplaced;
  for (const Candidate& each : candidates) {
    if (each.domain.empty() || !each.is_nic) continue;
    const auto found = find_nic(topology, each.pci, each.domain);
    if (!found) {
      if (unplaced.insert(each.domain).second)
        topology.unplaced.push_back(
            {each.domain,
             each.pci.empty()
                 ? "libfabric tells no PCI address of it, and no device of that name "
                   "is in the machine's topology"
                 : "its PCI address, " + each.pci + ", is not in the machine's topology"});
      continue;
    }
    Nic& nic = topology.nics[*found];
    if (nic.name == nic.pci) nic.name = each.domain;
    if (nic.gbps <= 0) nic.gbps = each.gbps;
  }
  return topology;
}

std::vector<std::string> Locality::near_nics() const {
  std::vector<std::size_t> all(topology_.nics.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Place> places;
  for (const int gpu : gpus_) places.push_back({MemoryKind::device, -1, gpu});
  if (places.empty())
    for (const int node : nodes_) places.push_back({MemoryKind::host, node, -1});
  // NICs that are preferred and others are never chosen between. Those that serve, by turns of the
  // places; then all others.
  const auto preferred = preferred_nics(topology_);
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t nic) {
    if (!contains(order, nic)) order.push_back(nic);
  };
  std::vector<Affinity> near;
  for (const Place& place : places) near.push_back(affinity(topology_, place, preferred));
  for (std::size_t i = 0; i < preferred.size(); ++i)
    for (const Affinity& each : near)
      if (i < each.serving) add(each.order[i].nic);
  for (const Place& place : places)
    for (const NicCost& each : affinity(topology_, place, all).order) add(each.nic);
  std::vector<std::string> names;
  for (const std::size_t nic : order) {
    const Nic& each = topology_.nics[nic];
    // libfabric may know either: 1.17 tells no addresses of NICs in software (soft-RoCE).
    if (!each.pci.empty()) names.push_back(each.pci);
    names.push_back(each.name);
    if (!each.interface.empty() && each.interface != each.name) names.push_back(each.interface);
  }
  return names;
}

int Locality::numa_node_of(const Candidate& candidate) const {
  const auto nic = find_nic(topology_, candidate.pci, candidate.domain);
  return nic ? topology_.nics[*nic].numa_node : -1;
}

void Locality::add_rail(const Capability& record, const RailKind& kind) {
  RailPlace rail{kind, find_nic(topology_, record.pci, record.domain), record.gbps};
  if (rail.nic) {
    Nic& nic = topology_.nics[*rail.nic];
    nic.down = false;  // it was when the machine was read
    if (nic.gbps > 0) rail.gbps = nic.gbps;
  }
  rails_.push_back(std::move(rail));
}

int Locality::numa_node_of(std::size_t rail) const {
  const auto& nic = rails_[rail].nic;
  return nic ? topology_.nics[*nic].numa_node : -1;
}

double Locality::gbps_of(std::size_t rail) const {
  return rails_[rail].gbps;
}

double Locality::gbps_between(std::size_t rail, const Place& place) const {
  const double gbps = gbps_of(rail);
  const auto& nic = rails_[rail].nic;
  if (!nic || gbps <= 0) return gbps;
  const std::size_t only[] = {*nic};
  return std::min(gbps, affinity(topology_, place, only).order.front().gbps);
}

std::vector<std::string> Locality::notes_between(std::size_t rail, const Place& place) const {
  const auto& nic = rails_[rail].nic;
  if (!nic) return {};
  const std::size_t only[] = {*nic};
  return affinity(topology_, place, only).notes;
}

/// The NICs that a rail might also have been on.
std::vector<std::size_t> Locality::alike(std::size_t nic) const {
  auto found = preferred_nics(topology_);
  if (contains(found, nic)) return found;
  found.clear();
  for (std::size_t i = 0; i < topology_.nics.size(); ++i)
    if (topology_.nics[i].kind == topology_.nics[nic].kind) found.push_back(i);
  return found;
}

std::vector<std::size_t> Locality::serving(const Place& place) const {
  std::set<RailKind> kinds;
  for (const RailPlace& rail : rails_) kinds.insert(rail.kind);
  std::vector<std::size_t> result;
  for (const RailKind& kind : kinds) {
    std::set<std::size_t> open;
    for (const RailPlace& rail : rails_)
      if (rail.kind == kind && rail.nic) open.insert(*rail.nic);
    std::set<std::size_t> serve;
    if (!open.empty()) {
      auto nics = alike(*open.begin());
      nics.insert(nics.end(), open.begin(), open.end());  // whatever sort they are of
      std::vector<std::size_t> missing;
      std::copy_if(nics.begin(), nics.end(), std::back_inserter(missing),
                   [&](std::size_t nic) { return !open.contains(nic); });
      const Affinity near = affinity(topology_, place, nics, missing);
      for (std::size_t i = 0; i < near.serving; ++i) serve.insert(near.order[i].nic);
    }
    for (std::size_t i = 0; i < rails_.size(); ++i)
      if (rails_[i].kind == kind && (!rails_[i].nic || serve.contains(*rails_[i].nic)))
        result.push_back(i);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace weft::core
