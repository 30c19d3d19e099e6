#include "path/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace weft::core {
namespace {

/// "host memory to socket buffer by the kernel".
std::string copies_text(const Path& path, bool (Hop::*counts)() const noexcept) {
  std::vector<std::string> copies;
  for (const Hop& hop : path.hops)
    if ((hop.*counts)())
      copies.push_back(
          fmt::format("{} to {} by {}", to_string(hop.from), to_string(hop.to), in_words(hop.by)));
  return fmt::format("{}", fmt::join(copies, ", "));
}

std::string count_text(unsigned count) {
  return count == 0 ? "no copies" : fmt::format("{} {}", count, count == 1 ? "copy" : "copies");
}

/// Why there is no better one.
std::string otherwise_text(const Path& path) {
  return path.not_used.empty() ? "" : fmt::format("; not used: {}", fmt::join(path.not_used, "; "));
}

std::string way_text(const Path& path) {
  if (path.transport == TransportKind::device_copy) return "the GPU's copy engine";
  return fmt::format("{}{}", path.provider,
                     path.transport == TransportKind::bounce ? " through bounce buffers" : "");
}

/// The words for `made` copies, and for those of small pieces.
std::string made_text(const Path& path, unsigned made, unsigned bounces,
                      bool (Hop::*counts)() const noexcept) {
  std::string text;
  if (made > 0) text = fmt::format(": {}", copies_text(path, counts));
  if (bounces > 0)
    text += fmt::format("{}pieces below {} bytes are bounced {} on top", text.empty() ? ": " : "; ",
                        path.bounced_below, bounces == 1 ? "once" : "twice");
  return text;
}

/// Of both sides: what speaks against it may be the other's.
std::string gpudirect_reasons(const Path& path) {
  std::vector<std::string_view> reasons;
  for (const std::string& each : path.not_used)
    if (each.starts_with("GPUDirect")) reasons.push_back(each);
  return reasons.empty() ? "bounce buffers were asked for"
                         : fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

std::string reject_reason(const Policy& policy, const Path& path, std::uint64_t smallest_piece) {
  const auto& allowed = policy.providers;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), path.provider) == allowed.end())
    return fmt::format("allows only {}, and the path goes over {}{}", fmt::join(allowed, ", "),
                       path.provider, otherwise_text(path));

  const unsigned bounces =
      smallest_piece < path.bounced_below ? path.bounces_local + path.bounces_remote : 0;
  if (const unsigned made = path.copies + bounces; policy.max_copies && made > *policy.max_copies)
    return fmt::format("allows {} of each byte, and the path over {} makes {}{}{}",
                       count_text(*policy.max_copies), way_text(path), made,
                       made_text(path, path.copies, bounces, &Hop::copies), otherwise_text(path));
  if (const unsigned made = path.cpu_copies + bounces; policy.forbid_cpu_copies && made > 0)
    return fmt::format(
        "forbids copies by the CPU, and the path over {} makes {}{}{}", way_text(path), made,
        made_text(path, path.cpu_copies, bounces, &Hop::busies_cpu), otherwise_text(path));

  const Hop& first = path.hops.front();
  const Hop& last = path.hops.back();
  for (const Stop& memory : {first.from, last.to}) {
    const bool direct =
        memory.side == PathSide::local ? path.gpudirect_local : path.gpudirect_remote;
    const bool staged = !direct && path.transport != TransportKind::device_copy;
    if (policy.require_gpudirect && memory.kind == Stop::Kind::device && staged)
      return fmt::format("requires GPUDirect, and {} is staged through host memory; {}",
                         to_string(memory), gpudirect_reasons(path));
  }

  if (policy.min_gbps > 0 && path.gbps <= 0)
    return fmt::format("asks for {} Gb/s at least, and what the path over {} carries is {}",
                       policy.min_gbps, way_text(path), path.limit);
  if (path.gbps < policy.min_gbps)
    return fmt::format("asks for {} Gb/s at least, and the path over {} carries {} at most: {}{}",
                       policy.min_gbps, way_text(path), path.gbps, path.limit,
                       otherwise_text(path));
  return {};
}

}  // namespace weft::core
