#include "demo/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft::tool {
namespace {

// Odd numbers without structure (digits of irrational numbers), so that the streams of neighbours
// have nothing in common.
constexpr std::uint64_t request_step = 0xd1342543de82ef95, layer_step = 0xaf251af3b0f025b5,
                        row_step = 0x94d049bb133111eb, head_step = 0xff51afd7ed558ccd;

/// The stream that a vector holds: each byte depends on request, layer, field, row, head and its
/// own position. `field`: its code.
std::uint64_t stream_of(PatternKey key, const Vector& vector, std::uint64_t field) {
  return key.seed + (key.request + 1) * request_step + vector.layer * layer_step + field +
         vector.row * row_step + vector.head * head_step;
}

/// Looks for a stop lie as far apart.
constexpr std::size_t piece_bytes = std::size_t{16} << 20;

bool covered(const Expected& what, const PageMap& map, std::size_t group, const Vector& vector) {
  const Shared& shared = what.shared;
  if (vector.layer < shared.layers.first ||
      vector.layer - shared.layers.first >= shared.layers.count)
    return false;
  const kv::HeadRange heads = shared.heads[group][vector.field];
  if (vector.head < heads.first || vector.head - heads.first >= heads.count) return false;
  const std::uint64_t tokens = map.field(group, vector).tokens_per_row;
  if (tokens == 0) return what.tokens > 0;
  return vector.row * tokens < what.tokens &&
         (vector.row + 1) * tokens > shared.first_token(group, what.tokens);
}

}  // namespace

void fill(std::span<std::byte> cache, const PageMap& map, const BlockTable& table,
          const Expected& what, kv::LayerRange layers, const std::stop_token& stop) {
  map.each(table, layers, stop, [&](std::size_t group, const Vector& vector, std::uint64_t offset) {
    if (!covered(what, map, group, vector)) return;
    const PageMap::Field& field = map.field(group, vector);
    pattern(stream_of(what.key, vector, field.code), 0, cache.subspan(offset, field.vector));
  });
}

Findings verify(std::span<const std::byte> cache, const PageMap& map, const BlockTable& table,
                const Expected& what, kv::LayerRange layers, const std::stop_token& stop) {
  Findings findings;
  map.each(table, layers, stop, [&](std::size_t group, const Vector& vector, std::uint64_t offset) {
    const bool filled = covered(what, map, group, vector);
    const PageMap::Field& field = map.field(group, vector);
    const auto bytes = cache.subspan(offset, field.vector);
    const Difference difference =
        filled ? tool::difference(bytes, stream_of(what.key, vector, field.code), 0)
               : difference_from_canary(bytes);
    findings.add(bytes.size(), difference, [&](const Difference& wrong) {
      return fmt::format(
          "request {}, layer {}, {}, row {}, head {}, byte {}: 0x{:02x} instead of 0x{:02x}{}",
          what.key.request, vector.layer, field.name, vector.row, vector.head, wrong.first,
          std::to_integer<unsigned>(wrong.found), std::to_integer<unsigned>(wrong.wanted),
          filled ? "" : " (must not be written)");
    });
  });
  return findings;
}

void clear(std::span<std::byte> cache, const PageMap& map, const BlockTable& table,
           kv::LayerRange layers, const std::stop_token& stop) {
  map.each(table, layers, stop, [&](std::size_t group, const Vector& vector, std::uint64_t offset) {
    std::memset(cache.data() + offset, std::to_integer<int>(canary),
                map.field(group, vector).vector);
  });
}

void clear(std::span<std::byte> memory, const std::stop_token& stop) {
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += piece_bytes)
    std::memset(memory.data() + at, std::to_integer<int>(canary),
                std::min(piece_bytes, memory.size() - at));
}

Findings verify_canary(std::span<const std::byte> memory, std::uint64_t start,
                       const std::stop_token& stop) {
  Findings findings;
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += piece_bytes) {
    const auto piece = memory.subspan(at, std::min(piece_bytes, memory.size() - at));
    findings.add(piece.size(), difference_from_canary(piece), [&](const Difference& wrong) {
      return fmt::format("offset {} of the cache, which nobody was granted: 0x{:02x}",
                         start + at + wrong.first, std::to_integer<unsigned>(wrong.found));
    });
  }
  return findings;
}

}  // namespace weft::tool
