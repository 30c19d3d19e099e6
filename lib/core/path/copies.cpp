#include "path/copies.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace weft::core {
namespace {

/// Between a segment's memory and the bounce-buffer transport's buffer on this side, or from GPU to
/// GPU: the engine sees to it.
bool is_own_copy(const Hop& hop) {
  if (hop.from.kind == Stop::Kind::device && hop.to.kind == Stop::Kind::device) return true;
  const auto ends = {hop.from.kind, hop.to.kind};
  return hop.side == PathSide::local &&
         std::find(ends.begin(), ends.end(), Stop::Kind::bounce_buffer) != ends.end() &&
         std::any_of(ends.begin(), ends.end(), [](Stop::Kind kind) {
           return kind == Stop::Kind::host || kind == Stop::Kind::device ||
                  kind == Stop::Kind::file || kind == Stop::Kind::file_buffer;
         });
}

/// From the one process's memory to the other's, on this side: this engine does so itself where it
/// has mapped the other's, else the kernel.
bool is_between_processes(const Hop& hop) {
  return hop.side == PathSide::local && hop.busies_cpu() && hop.from.kind == Stop::Kind::host &&
         hop.to.kind == Stop::Kind::host;
}

}  // namespace

std::vector<Report::Copied> copies_on(const Path& path, std::uint64_t carried, std::uint64_t own) {
  using Known = Report::Copied::Known;
  std::vector<Report::Copied> copies;
  for (const Hop& hop : path.hops) {
    if (!hop.copies()) continue;
    if (is_between_processes(hop)) {
      const std::uint64_t rest = carried - std::min(own, carried);
      if (own > 0) copies.push_back({Known::counted, Mover::cpu, false, own});
      if (rest > 0 || own == 0) copies.push_back({Known::declared, Mover::kernel, false, rest});
      continue;
    }
    const bool counted = is_own_copy(hop);
    copies.push_back({counted ? Known::counted : Known::declared, hop.by,
                      hop.side == PathSide::remote, counted ? own : carried});
  }
  if (path.bounced_below == 0) return copies;
  for (const auto& [count, at_peer] :
       {std::pair(path.bounces_local, false), std::pair(path.bounces_remote, true)})
    if (count > 0) copies.push_back({Known::unknown, Mover::cpu, at_peer, 0});
  return copies;
}

}  // namespace weft::core
