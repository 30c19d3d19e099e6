#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <weft/kv.hpp>

#include "kv/shape.hpp"
#include "kv/size.hpp"

namespace weft::kv {

namespace {

/// The group of each region.
std::vector<std::size_t> groups_of(const Layout& layout) {
  std::vector<std::size_t> groups;
  for (std::size_t i = 0; i < layout.groups().size(); ++i) {
    // The layout was checked at its creation: the shape fits.
    const auto shape = shape_of(layout.groups()[i], layout.parallel().tp);
    groups.insert(groups.end(), shape->region_bytes.size(), i);
  }
  return groups;
}

/// Regions of different groups may share all of their bytes, and others none.
Result<void> check_overlap(std::span<const Base> bases, std::span<const std::uint64_t> bytes,
                           const std::vector<std::size_t>& groups) {
  std::vector<std::size_t> order(bases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto position = [&](std::size_t i) { return std::pair(bases[i].region, bases[i].offset); };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return position(a) < position(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t before = order[i - 1];
    const std::size_t after = order[i];
    const bool shared = position(before) == position(after) && bytes[before] == bytes[after] &&
                        groups[before] != groups[after];
    if (!shared && bases[before].region == bases[after].region &&
        bases[before].offset + bytes[before] > bases[after].offset) {
      return fail(Code::invalid_argument,
                  fmt::format("Bases {} and {} overlap: {} bytes at offset {} and {} bytes at "
                              "offset {} of region {}.",
                              before, after, bytes[before], bases[before].offset, bytes[after],
                              bases[after].offset, bases[after].region));
    }
  }
  return {};
}

}  // namespace

Result<Cache> Cache::create(Layout layout, std::vector<Base> bases) {
  const auto bytes = layout.region_bytes();
  if (bases.size() != bytes.size()) {
    return fail(Code::invalid_argument,
                fmt::format("The layout has {} regions but {} bases were given.", bytes.size(),
                            bases.size()));
  }
  for (std::size_t i = 0; i < bases.size(); ++i) {
    if (!(Size(bases[i].offset) + bytes[i]).fits()) {
      return fail(Code::invalid_argument,
                  fmt::format("Base {} ends beyond 64 bits: {} bytes at offset {}.", i, bytes[i],
                              bases[i].offset));
    }
  }
  if (auto ok = check_overlap(bases, bytes, groups_of(layout)); !ok)
    return fail(std::move(ok).error());
  return Cache(std::move(layout), std::move(bases));
}

Result<Cache> Cache::contiguous(Layout layout, Base start) {
  std::vector<Base> bases;
  Size offset(start.offset);
  for (const std::uint64_t bytes : layout.region_bytes()) {
    bases.push_back({start.region, offset.value()});
    offset = offset + bytes;
  }
  if (!offset.fits()) {
    return fail(Code::invalid_argument,
                fmt::format("The cache ends beyond 64 bits: {} bytes at offset {}.", layout.bytes(),
                            start.offset));
  }
  return Cache(std::move(layout), std::move(bases));
}

}  // namespace weft::kv
