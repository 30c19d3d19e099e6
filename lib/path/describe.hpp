// The path of a transfer as a pure function of plain data: of any combination of memory, rails and
// hosts, whether they are at hand or not.
#pragma once

#include <string>
#include <vector>
#include <weft/path.hpp>

namespace weft::core {

/// Whether the remote memory can be copied to and from by the local memory's GPU.
struct Lending {
  bool lent = false;
  std::string reason = {};  // why not
};

/// What a path depends on.
struct PathFacts {
  /// One side of it.
  struct End {
    Place place;
    std::string nics;       // names, for people; empty: not known
    double nics_gbps = 0;   // of all together, on the way from the memory; 0: not known
    bool far_nics = false;  // the way to them is narrower than they are
    double gpu_gbps = 0;    // of the GPU's own link; 0: not known
  };
  End local, remote;
  Direction direction = Direction::write;
  TransportKind asked = TransportKind::automatic;
  bool same_host = false;
  std::string provider;
  std::vector<std::string> rails;
  Capability record;  // of these rails
  Lending lending;
  std::vector<std::string> passed_over;
};

/// Which transport carries bytes between such memory. `unsupported` if one-sided transfers were
/// asked for and the rail can't reach one of them, or copies by a GPU where there can be none.
Result<TransportKind> transport_between(TransportKind asked, const Place& local,
                                        const Place& remote, const Capability& record,
                                        const Lending& lending);

Result<Path> describe_path(const PathFacts& facts);

}  // namespace weft::core
