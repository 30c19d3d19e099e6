#include "demo/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft::tool {
namespace {

// Odd numbers without structure (digits of irrational numbers), so that the codes of neighbours
// have nothing in common.
constexpr std::uint64_t request_step = 0xd1342543de82ef95, layer_step = 0xaf251af3b0f025b5,
                        row_step = 0x94d049bb133111eb, head_step = 0xff51afd7ed558ccd;

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

std::uint64_t canary_word() {
  std::uint64_t word = 0;
  std::memset(&word, std::to_integer<int>(canary), word_bytes);
  return word;
}

/// Walks over `count` expected bytes, word by word; the last one may be cut.
template <typename Each>
void each_word(std::uint64_t count, std::uint64_t word, std::uint64_t step, Each&& each) {
  std::uint64_t at = 0;
  for (; at + word_bytes <= count; at += word_bytes, word += step) each(at, word, word_bytes);
  if (at < count) each(at, word, count - at);
}

std::uint64_t first_difference(const std::byte* bytes, const std::uint64_t& word) {
  std::byte wanted[word_bytes];
  std::memcpy(wanted, &word, word_bytes);
  std::uint64_t i = 0;
  while (bytes[i] == wanted[i]) ++i;
  return i;
}

std::uint64_t wrong_bytes(const std::byte* bytes, const std::uint64_t& word, std::size_t count) {
  std::byte wanted[word_bytes];
  std::memcpy(wanted, &word, word_bytes);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += bytes[i] != wanted[i] ? 1 : 0;
  return wrong;
}

/// Compares `count` bytes; the usual case costs one pass without a branch per word.
std::uint64_t differing(const std::byte* bytes, std::uint64_t count, std::uint64_t word,
                        std::uint64_t step) {
  std::uint64_t difference = 0;
  each_word(count, word, step, [&](std::uint64_t at, std::uint64_t wanted, std::size_t length) {
    std::uint64_t found = wanted;
    std::memcpy(&found, bytes + at, length);
    difference |= found ^ wanted;
  });
  if (difference == 0) return 0;
  std::uint64_t wrong = 0;
  each_word(count, word, step, [&](std::uint64_t at, std::uint64_t wanted, std::size_t length) {
    wrong += wrong_bytes(bytes + at, wanted, length);
  });
  return wrong;
}

struct WrongByte {
  std::uint64_t at = 0;
  std::byte found{}, wanted{};
};

WrongByte locate(const std::byte* bytes, std::uint64_t count, std::uint64_t word,
                 std::uint64_t step) {
  WrongByte wrong;
  bool located = false;
  each_word(count, word, step, [&](std::uint64_t at, std::uint64_t wanted, std::size_t length) {
    if (located || wrong_bytes(bytes + at, wanted, length) == 0) return;
    located = true;
    const std::uint64_t i = first_difference(bytes + at, wanted);
    std::byte of_word[word_bytes];
    std::memcpy(of_word, &wanted, word_bytes);
    wrong = {at + i, bytes[at + i], of_word[i]};
  });
  return wrong;
}

/// Looks for a stop lie as far apart.
constexpr std::size_t piece_bytes = std::size_t{16} << 20;

Findings verify_piece(std::span<const std::byte> memory, std::uint64_t start) {
  Findings findings;
  findings.bytes_checked = memory.size();
  findings.bytes_wrong = differing(memory.data(), memory.size(), canary_word(), 0);
  if (findings.bytes_wrong == 0) return findings;
  const WrongByte byte = locate(memory.data(), memory.size(), canary_word(), 0);
  findings.first = fmt::format("offset {} of the cache, which nobody was granted: 0x{:02x}",
                               start + byte.at, std::to_integer<unsigned>(byte.found));
  return findings;
}

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

std::uint64_t first_word(PatternKey key, const Vector& vector, std::uint64_t field) noexcept {
  return key.seed + (key.request + 1) * request_step + vector.layer * layer_step + field +
         vector.row * row_step + vector.head * head_step;
}

void Findings::add(const Findings& other) {
  bytes_checked += other.bytes_checked;
  bytes_wrong += other.bytes_wrong;
  if (first.empty()) first = other.first;
}

void fill(std::span<std::byte> cache, const PageMap& map, const BlockTable& table,
          const Expected& what, kv::LayerRange layers, const std::stop_token& stop) {
  map.each(table, layers, stop, [&](std::size_t group, const Vector& vector, std::uint64_t offset) {
    if (!covered(what, map, group, vector)) return;
    const PageMap::Field& field = map.field(group, vector);
    each_word(field.vector, first_word(what.key, vector, field.code), word_step,
              [&](std::uint64_t at, std::uint64_t word, std::size_t length) {
                std::memcpy(cache.data() + offset + at, &word, length);
              });
  });
}

Findings verify(std::span<const std::byte> cache, const PageMap& map, const BlockTable& table,
                const Expected& what, kv::LayerRange layers, const std::stop_token& stop) {
  Findings findings;
  map.each(table, layers, stop, [&](std::size_t group, const Vector& vector, std::uint64_t offset) {
    const bool filled = covered(what, map, group, vector);
    const PageMap::Field& field = map.field(group, vector);
    const std::uint64_t word = filled ? first_word(what.key, vector, field.code) : canary_word();
    const std::uint64_t step = filled ? word_step : 0;
    const std::uint64_t count = field.vector;
    const std::uint64_t wrong = differing(cache.data() + offset, count, word, step);
    findings.bytes_checked += count;
    findings.bytes_wrong += wrong;
    if (wrong == 0 || !findings.first.empty()) return;
    const WrongByte byte = locate(cache.data() + offset, count, word, step);
    findings.first = fmt::format(
        "request {}, layer {}, {}, row {}, head {}, byte {}: 0x{:02x} instead of 0x{:02x}{}",
        what.key.request, vector.layer, field.name, vector.row, vector.head, byte.at,
        std::to_integer<unsigned>(byte.found), std::to_integer<unsigned>(byte.wanted),
        filled ? "" : " (must not be written)");
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
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += piece_bytes)
    findings.add(
        verify_piece(memory.subspan(at, std::min(piece_bytes, memory.size() - at)), start + at));
  return findings;
}

}  // namespace weft::tool
