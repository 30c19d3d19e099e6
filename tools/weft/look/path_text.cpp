#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "common/layout.hpp"
#include "common/names.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "look/path_views.hpp"

namespace weft::tool {
namespace {

std::string fact(const std::string& name, const std::string& value) {
  return hanging(fmt::format("  {:<12} ", name), printable(value));
}

std::string list_of(const std::string& name, const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += fact(i == 0 ? name : "", items[i]);
  return text;
}

std::string copies_text(unsigned count) {
  if (count == 0) return "no copies";
  return fmt::format("{} {}", count, count == 1 ? "copy" : "copies");
}

std::string limit_text(const Path& path) {
  return path.gbps > 0 ? fmt::format("{}: {}", bit_rate(path.gbps), path.limit) : path.limit;
}

std::string small_pieces_text(const Path& path) {
  return fmt::format("below {} bytes, {} more by a CPU: {} here and {} at the peer",
                     path.bounced_below, path.bounces_local + path.bounces_remote,
                     path.bounces_local, path.bounces_remote);
}

}  // namespace

std::string mover_text(const Hop& hop) {
  return hop.copies() ? fmt::format("{} copies", in_words(hop.by))
                      : fmt::format("by {}", in_words(hop.by));
}

std::string path_headline(const Path& path) {
  std::string text = fmt::format("{} over {}{}: {} of each byte",
                                 name_of(direction_names, path.direction), printable(path.provider),
                                 path.transport == TransportKind::bounce ? " through bounce buffers"
                                 : path.transport == TransportKind::device_copy ? " from GPU to GPU"
                                                                                : "",
                                 copies_text(path.copies));
  if (path.copies > 0)
    text += fmt::format(", {} here and {} at the peer, {} by a CPU", path.copies_local,
                        path.copies_remote, path.cpu_copies);
  return text;
}

std::string path_text(const Path& path) {
  std::string text = hanging("", path_headline(path)) + "\n";
  text += fmt::format("  {}\n", printable(to_string(path.hops.front().from)));
  for (const Hop& hop : path.hops)
    text += fmt::format("    {} {}\n  {}\n", hop.copies() ? "║" : "│", mover_text(hop),
                        printable(to_string(hop.to)));
  text += "\n" + fact("rails", fmt::format("{}", fmt::join(path.rails, ", ")));
  text += fact("hosts", path.same_host ? "both are on one" : "not proven to be on one");
  if (path.bounced_below > 0) text += fact("small pieces", small_pieces_text(path));
  text += fact("limit", limit_text(path));
  text += list_of("not used", path.not_used);
  if (!path.refused.empty()) text += fact("refused", path.refused);
  return text;
}

}  // namespace weft::tool
