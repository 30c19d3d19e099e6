#include "common/memory_place.hpp"

#include <fmt/format.h>

#include <charconv>

namespace weft::tool {
namespace {

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

Result<void> check_memory(const std::string& memory) {
  if (memory == shared_memory || parse_place(memory)) return {};
  return fail(Code::invalid_argument,
              fmt::format("'{}' is no memory: it is host, shared, node:N or gpu:N", memory));
}

int gpu_of(const std::string& memory) {
  return parse_place(memory).value_or(Place{}).device;
}

}  // namespace weft::tool
