// Paths in words.
#include <fmt/format.h>

#include <weft/path.hpp>

namespace weft {
namespace {

std::string place_text(const Stop& stop, std::string_view what) {
  std::string text(what);
  if (stop.device >= 0 && stop.kind == Stop::Kind::host)
    text += fmt::format(" near GPU {}", stop.device);
  if (stop.numa_node >= 0 && stop.kind == Stop::Kind::host)
    text += fmt::format(" on node {}", stop.numa_node);
  return text;
}

std::string own_text(const Stop& stop) {
  switch (stop.kind) {
    case Stop::Kind::host:
      return place_text(stop, "host memory");
    case Stop::Kind::device:
      return stop.device >= 0 ? fmt::format("memory of GPU {}", stop.device) : "memory of a GPU";
    case Stop::Kind::file:
      return "file";
    case Stop::Kind::file_buffer:
      return "aligned buffer";
    case Stop::Kind::bounce_buffer:
      return "bounce buffer";
    case Stop::Kind::provider_buffer:
      return "provider buffer";
    case Stop::Kind::socket_buffer:
      return "socket buffer";
    case Stop::Kind::nic:
      return stop.name.empty() ? "NIC" : fmt::format("NIC {}", stop.name);
    case Stop::Kind::wire:
      return "wire";
  }
  return "?";
}

}  // namespace

std::string to_string(const Stop& stop) {
  return stop.side == PathSide::remote ? "the peer's " + own_text(stop) : own_text(stop);
}

}  // namespace weft
