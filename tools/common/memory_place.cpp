#include "common/memory_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weft::tool {
namespace {

constexpr std::string_view kinds[] = {"gpu:", "node:"};

bool read_index(std::string_view text, int& index) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc{} && end == text.data() + text.size() && index >= 0;
}

}  // namespace

Result<Place> parse_place(std::string_view text) {
  Place place;
  if (text == "host") return place;
  if (text.starts_with("gpu:") && read_index(text.substr(4), place.device)) {
    place.kind = MemoryKind::device;
    return place;
  }
  if (text.starts_with("node:") && read_index(text.substr(5), place.numa_node)) return place;
  return fail(Code::invalid_argument,
              fmt::format("'{}' is no memory: it is host, node:N or gpu:N", text));
}

Result<Destination> parse_destination(std::string_view text) {
  Destination destination;
  std::string_view memory = "host";
  for (const std::string_view kind : kinds) {
    const std::size_t at = text.rfind(kind);
    if (at == text.npos || (at > 0 && text[at - 1] != ':')) continue;
    memory = text.substr(at);
    text = text.substr(0, at > 0 ? at - 1 : 0);
    break;
  }
  auto place = parse_place(memory);
  if (!place) return fail(std::move(place.error()));
  destination.place = *place;
  if (text != "local") destination.address = text;
  return destination;
}

}  // namespace weft::tool
