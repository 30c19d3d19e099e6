// The machine around an engine, where its rails are in it, and which of them serve which memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/engine.hpp>
#include <weft/topology.hpp>

#include "peer/pairing.hpp"

namespace weft::core {

/// Set up while the engine opens; constant afterwards.
class Locality {
 public:
  /// Reads the machine. Fails if a GPU that `config` names is not in it, or its file can't be read;
  /// a machine that can't be read has unknown places only.
  static Result<Locality> look(const Config& config);

  const Topology& topology() const noexcept { return topology_; }

  /// How many GPUs the engine is for.
  unsigned gpus() const noexcept { return static_cast<unsigned>(gpus_.size()); }
  /// NICs by their nearness to these GPUs, else to the process's cores, best first: each by its PCI
  /// address, where it has one, and its names.
  std::vector<std::string> near_nics() const;

  /// Of a NIC that was not opened yet; -1 where it can't be told.
  int numa_node_of(const Candidate& candidate) const;

  /// Takes note of the next rail. Rails of one `kind` can stand in for each other.
  void add_rail(const Capability& record, const RailKind& kind);
  /// By index of the rail: of its NIC, -1 where it can't be told.
  int numa_node_of(std::size_t rail) const;
  /// Its speed in Gb/s; 0 where it can't be told.
  double gbps_of(std::size_t rail) const;
  /// What the narrowest part of the way from memory there over the rail's NIC to the network
  /// carries, in Gb/s; 0 where the NIC's speed can't be told.
  double gbps_between(std::size_t rail, const Place& place) const;
  /// What was made of links on that way that report less than the NIC has (Affinity::notes).
  std::vector<std::string> notes_between(std::size_t rail, const Place& place) const;

  /// Indices of the rails that serve memory there, ascending: of each kind those whose NICs do. A
  /// rail whose place is unknown serves all.
  std::vector<std::size_t> serving(const Place& place) const;

 private:
  struct RailPlace {
    RailKind kind;
    std::optional<std::size_t> nic;  // in the topology
    double gbps = 0;
  };
  std::vector<std::size_t> alike(std::size_t nic) const;

  Topology topology_;
  std::vector<int> gpus_;   // that the engine is for, by index
  std::vector<int> nodes_;  // of the process's cores
  std::vector<RailPlace> rails_;
};

/// Takes over what libfabric tells of NICs; those that can't be found in the topology are said to
/// be unplaced.
Topology with_candidates(Topology topology, std::span<const Candidate> candidates);

}  // namespace weft::core
