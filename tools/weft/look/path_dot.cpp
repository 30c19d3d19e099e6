#include <fmt/format.h>

#include <vector>

#include "look/dot_labels.hpp"
#include "look/path_views.hpp"

namespace weft::tool {
namespace {

constexpr const char* look =
    R"(graph [rankdir=LR, bgcolor=white, pad=0.2, nodesep=0.2, ranksep=0.7,
  fontname="Helvetica", fontsize=12, labelloc=b];
node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11];
edge [color="#555555", fontname="Helvetica", fontsize=9];
)";

constexpr const char* copied = R"(, color="#d55e00", fontcolor="#d55e00", penwidth=3)";

/// Those of a side, in a frame.
std::string frame(const std::vector<Stop>& stops, PathSide side, const char* title) {
  std::string out = fmt::format(
      "subgraph cluster_{} {{ style=\"rounded,filled\"; color=\"#bbbbbb\"; fillcolor=\"#fafafa\"; "
      "margin=12; label=<{}>; labelloc=t;\n",
      to_string(side), title);
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].side != side) continue;
    Stop own = stops[i];
    own.side = PathSide::local;  // the frame says whose it is
    out += fmt::format("s{} [label=<{}>];\n", i, html(to_string(own)));
  }
  return out + "}\n";
}

}  // namespace

std::string to_dot(const Path& path) {
  std::vector<Stop> stops{path.hops.front().from};
  for (const Hop& hop : path.hops) stops.push_back(hop.to);
  std::string out = std::string("digraph path {\n") + look;
  out += frame(stops, PathSide::local, "this engine") + frame(stops, PathSide::remote, "the peer");
  for (std::size_t i = 0; i < stops.size(); ++i)
    if (stops[i].side == PathSide::between) out += fmt::format("s{} [label=<wire>];\n", i);
  for (std::size_t i = 0; i < path.hops.size(); ++i)
    out += fmt::format("s{} -> s{} [label=<{}>{}];\n", i, i + 1, html(mover_text(path.hops[i])),
                       path.hops[i].copies() ? copied : "");
  return out + fmt::format("label=<{}>;\n}}\n", html(path_headline(path)));
}

}  // namespace weft::tool
