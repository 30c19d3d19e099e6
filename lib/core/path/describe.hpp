// The path of a transfer as a pure function of plain data: of any combination of memory, rails and
// hosts, whether they are at hand or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/path.hpp>

namespace weft::core {

/// Whether the remote memory can be copied to and from by the local memory's GPU.
struct Lending {
  bool lent = false;
  std::string reason = {};  // why not; empty where one of the memories is no GPU's
};

/// Whether the remote memory is mapped, and copied to and from by this process itself.
struct Mapping {
  bool mapped = false;
  std::string reason = {};  // why not, where the rails can (Capability::maps_memory)
};

/// The facts that decide a path.
struct PathFacts {
  /// One side of it.
  struct End {
    Place place;
    /// Whether NICs reach the memory: as the record says, or as has been seen with a segment's.
    enum class Reach : std::uint8_t { as_recorded, direct, staged } reach = Reach::as_recorded;
    std::string why_staged;  // of Reach::staged, as a part of a sentence
    std::string nics;        // names, for people; empty: not known
    double nics_gbps = 0;    // of all together, on the way from the memory; 0: not known
    bool far_nics = false;   // the way to them is narrower than they are
    std::vector<std::string> link_notes;  // about what links on that way report
    double gpu_gbps = 0;                  // of the GPU's own link; 0: not known
  };
  End local, remote;
  Direction direction = Direction::write;
  TransportKind asked = TransportKind::automatic;
  bool same_host = false;
  std::string provider;
  std::vector<std::string> rails;
  Capability record;  // of these rails
  Lending lending;
  Mapping mapping;
  std::vector<std::string> not_used;
};

/// `unsupported` if one-sided transfers were asked for and NICs can't reach one of the memories, or
/// copies by a GPU where there can be none.
Result<Path> describe_path(const PathFacts& facts);

}  // namespace weft::core
