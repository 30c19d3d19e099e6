#include "content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "pattern.hpp"

namespace weft::chaos {
namespace {

constexpr std::uint64_t no_transfer = 0;

Stretch part_of(const Stretch& stretch, std::uint64_t begin, std::uint64_t end) {
  return {begin, end - begin, stretch.stream, stretch.from + (begin - stretch.offset)};
}

std::byte byte_of(const Stretch& stretch, std::uint64_t at) {
  return test::pattern_at(stretch.stream, stretch.from + (at - stretch.offset));
}

Wrong words(std::uint64_t at, std::byte found, const std::vector<Stretch>& candidates) {
  std::string streams;
  for (const Stretch& each : candidates)
    streams += fmt::format("{}{:#x}", streams.empty() ? "" : " or ", each.stream);
  return {at, fmt::format("the byte at {} is {:#04x}, which is not of stream {}", at,
                          std::to_integer<unsigned>(found), streams)};
}

}  // namespace

std::optional<Wrong> difference(const std::byte* arena, const Stretch& stretch) {
  const Blob expected = test::pattern(stretch.length, stretch.stream, stretch.from);
  const std::byte* actual = arena + stretch.offset;
  if (std::memcmp(actual, expected.data(), expected.size()) == 0) return std::nullopt;
  std::uint64_t count = 0, first = stretch.length, last = 0;
  for (std::uint64_t i = 0; i < stretch.length; ++i) {
    if (actual[i] == expected[i]) continue;
    ++count;
    first = std::min(first, i);
    last = i;
  }
  if (count == 0) return Wrong{stretch.offset, "it was wrong a moment ago, and is right now"};
  Wrong wrong = words(stretch.offset + first, actual[first], {stretch});
  wrong.text = fmt::format("{} of {} bytes from {} on, between the {}th and the {}th; {}", count,
                           stretch.length, stretch.offset, first, last, wrong.text);
  return wrong;
}

Content::Content(std::uint64_t offset, std::uint64_t length, std::uint64_t stream)
    : layers_{{no_transfer, {offset, length, stream, offset}, true}} {}

void Content::refill(std::uint64_t stream) {
  const Stretch& base = layers_.front().stretch;
  *this = Content(base.offset, base.length, stream);
}

void Content::lay(std::uint64_t transfer, const Stretch& stretch) {
  layers_.push_back({transfer, stretch, false});
}

void Content::certain(std::uint64_t transfer, std::optional<std::uint64_t> offset) {
  for (Layer& each : layers_) each.certain = each.certain || each.of(transfer, offset);
  // What lies below one certain layer alone is never seen again.
  for (std::size_t top = layers_.size(); top-- > 1;) {
    if (!layers_[top].of(transfer, offset)) continue;
    const Stretch cover = layers_[top].stretch;
    const auto below = layers_.begin() + static_cast<std::ptrdiff_t>(top);
    const auto covered = std::remove_if(layers_.begin() + 1, below, [&](const Layer& each) {
      return each.stretch.offset >= cover.offset && each.stretch.end() <= cover.end();
    });
    top -= static_cast<std::size_t>(below - covered);
    layers_.erase(covered, below);
  }
}

void Content::take_back(std::uint64_t transfer, std::optional<std::uint64_t> offset) {
  std::erase_if(layers_, [&](const Layer& each) { return each.of(transfer, offset); });
}

template <typename Each>
bool Content::for_parts(std::uint64_t begin, std::uint64_t end, Each&& each) const {
  std::set<std::uint64_t> edges{begin, end};
  for (const Layer& layer : layers_)
    for (const std::uint64_t edge : {layer.stretch.offset, layer.stretch.end()})
      if (edge > begin && edge < end) edges.insert(edge);
  for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
    const std::uint64_t from = *edge, to = *std::next(edge);
    std::vector<Stretch> candidates;
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      if (layer->stretch.offset > from || layer->stretch.end() < to) continue;
      candidates.push_back(part_of(layer->stretch, from, to));
      if (layer->certain) break;
    }
    if (!each(from, to, candidates)) return false;
  }
  return true;
}

std::optional<std::vector<Stretch>> Content::known(std::uint64_t offset,
                                                   std::uint64_t length) const {
  std::vector<Stretch> found;
  const bool all = for_parts(offset, offset + length,
                             [&](std::uint64_t, std::uint64_t, const std::vector<Stretch>& there) {
                               found.push_back(there.front());
                               return there.size() == 1;
                             });
  if (!all) return std::nullopt;
  return found;
}

std::optional<Wrong> Content::wrong(const std::byte* arena) const {
  std::optional<Wrong> found;
  const Stretch& whole = layers_.front().stretch;
  for_parts(whole.offset, whole.end(),
            [&](std::uint64_t from, std::uint64_t to, const std::vector<Stretch>& candidates) {
              const bool unknown =
                  std::any_of(candidates.begin(), candidates.end(),
                              [](const Stretch& each) { return each.stream == anything; });
              if (unknown) return true;
              if (candidates.size() == 1) {
                found = difference(arena, candidates.front());
                return !found;
              }
              for (std::uint64_t at = from; at < to && !found; ++at) {
                const std::byte actual = arena[at];
                const bool allowed =
                    std::any_of(candidates.begin(), candidates.end(),
                                [&](const Stretch& each) { return byte_of(each, at) == actual; });
                if (!allowed) found = words(at, actual, candidates);
              }
              return !found;
            });
  return found;
}

}  // namespace weft::chaos
