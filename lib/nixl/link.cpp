#include "nixl/link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"

namespace weft::nixl {
namespace {

unsigned bit_of(const Segment& local, const Remote& remote, Direction direction) {
  const bool reads = direction == Direction::read;
  const bool from_device = local.place().kind == MemoryKind::device;
  const bool to_device = remote.place().kind == MemoryKind::device;
  return 1U << ((reads ? 4U : 0U) + (from_device ? 2U : 0U) + (to_device ? 1U : 0U));
}

std::string text_of(const Path& path) {
  std::string text =
      fmt::format("over {}, rails {}; {} copies of each byte, {} by a CPU", path.provider,
                  fmt::join(path.rails, ", "), path.copies, path.cpu_copies);
  if (path.gbps > 0) text += fmt::format("; at most {:.0f} Gb/s: {}", path.gbps, path.limit);
  if (!path.not_used.empty()) text += fmt::format("; not used: {}", fmt::join(path.not_used, "; "));
  return text;
}

}  // namespace

Result<void> Link::send(const Blob& part, Deadline deadline) const {
  return engine_.signal(peer_, {notification_signal, part}, deadline);
}

void Link::explain(const Segment& local, const Remote& remote, Direction direction) {
  const unsigned bit = bit_of(local, remote, direction);
  if ((explained_.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((explained_.fetch_or(bit) & bit) != 0) return;
  const auto path = engine_.explain(local, remote, direction);
  if (!path) return;
  core::log(LogLevel::info, "NIXL agent {}: it is {} {}", agent_,
            direction == Direction::read ? "read" : "written", text_of(*path));
}

}  // namespace weft::nixl
