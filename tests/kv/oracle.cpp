#include "oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace weft::kv::oracle {

namespace {

constexpr std::uint8_t blank_byte = 0xC5;
constexpr std::uint8_t noise_byte = 0x3A;

/// Walks one cache in memory order.
class Walk {
 public:
  explicit Walk(const Cache& cache) : cache_(cache) {
    for (group_index_ = 0; group_index_ < cache.layout().groups().size(); ++group_index_) {
      group_ = &cache.layout().groups()[group_index_];
      if (group_->order == Order::layer_major) {
        layer_major();
      } else {
        block_major();
      }
    }
    end_region();
  }

  std::vector<Slot> slots;
  std::vector<std::uint64_t> sizes;

 private:
  void layer_major() {
    const bool split = group_->parts == Parts::split;
    switch (group_->regions) {
      case Regions::one:
        region();
        for (auto layer : group_->layers) split ? split_layer(layer) : fused_layer(layer);
        break;
      case Regions::per_layer:
        for (auto layer : group_->layers) {
          region();
          split ? split_layer(layer) : fused_layer(layer);
        }
        break;
      case Regions::per_part:
        for (std::uint32_t part = 0; part < 2; ++part) {
          region();
          for (auto layer : group_->layers) pool(layer, part);
        }
        break;
      case Regions::per_layer_and_part:
        for (auto layer : group_->layers) {
          for (std::uint32_t part = 0; part < 2; ++part) {
            region();
            pool(layer, part);
          }
        }
        break;
    }
  }

  void block_major() {
    if (group_->regions != Regions::per_part) region();
    if (group_->parts == Parts::split) {
      for (std::uint32_t part = 0; part < 2; ++part) {
        if (group_->regions == Regions::per_part) region();
        for (std::uint32_t block = 0; block < group_->blocks; ++block) {
          begin_block();
          for (auto layer : group_->layers) page(layer, part, block);
          end_block();
        }
      }
      return;
    }
    for (std::uint32_t block = 0; block < group_->blocks; ++block) {
      begin_block();
      for (auto layer : group_->layers) pages(layer, block);
      end_block();
    }
  }

  void split_layer(std::uint32_t layer) {
    pool(layer, 0);
    pool(layer, 1);
  }

  void pool(std::uint32_t layer, std::uint32_t part) {
    for (std::uint32_t block = 0; block < group_->blocks; ++block) {
      begin_block();
      page(layer, part, block);
      end_block();
    }
  }

  void fused_layer(std::uint32_t layer) {
    for (std::uint32_t block = 0; block < group_->blocks; ++block) {
      begin_block();
      pages(layer, block);
      end_block();
    }
  }

  void pages(std::uint32_t layer, std::uint32_t block) {
    page(layer, 0, block);
    if (group_->parts == Parts::fused) page(layer, 1, block);
  }

  void page(std::uint32_t layer, std::uint32_t part, std::uint32_t block) {
    const auto heads = heads_of_rank();
    if (group_->head_order == HeadOrder::nhd) {
      for (std::uint32_t token = 0; token < group_->tokens_per_block; ++token) {
        for (auto head : heads) vector(layer, part, block, token, head);
      }
    } else {
      for (auto head : heads) {
        for (std::uint32_t token = 0; token < group_->tokens_per_block; ++token) {
          vector(layer, part, block, token, head);
        }
      }
    }
  }

  void vector(std::uint32_t layer, std::uint32_t part, std::uint32_t block, std::uint32_t token,
              std::uint32_t head) {
    const std::uint32_t bytes = group_->head_size * group_->element_size;
    const Base& base = cache_.bases()[sizes.size()];
    slots.push_back(
        {group_index_, layer, part, block, token, head, bytes, base.region, base.offset + at_});
    at_ += bytes;
  }

  /// Heads and ranks as points on one scale: a rank holds the heads that its share of it meets.
  std::vector<std::uint32_t> heads_of_rank() const {
    const auto [size, rank] = cache_.layout().tensor_parallel();
    std::vector<std::uint32_t> heads;
    for (std::uint32_t head = 0; head < group_->kv_heads; ++head) {
      const bool ends_before = (head + 1) * size <= rank * group_->kv_heads;
      const bool begins_after = head * size >= (rank + 1) * group_->kv_heads;
      if (!ends_before && !begins_after) heads.push_back(head);
    }
    return heads;
  }

  void begin_block() { block_start_ = at_; }

  void end_block() {
    at_ += group_->block_padding;
    while ((at_ - block_start_) % group_->block_alignment != 0) ++at_;
  }

  void region() {
    end_region();
    open_ = true;
  }

  void end_region() {
    if (open_) sizes.push_back(at_);
    open_ = false;
    at_ = 0;
  }

  const Cache& cache_;
  const Group* group_ = nullptr;
  std::size_t group_index_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t block_start_ = 0;
  bool open_ = false;
};

/// The byte that belongs at a place of the request: depends on everything that makes it unique.
std::uint8_t content(const Slot& slot, std::uint64_t position, std::uint32_t byte) {
  std::uint64_t x = slot.group + 1;
  for (const std::uint64_t part : {std::uint64_t{slot.layer}, std::uint64_t{slot.part}, position,
                                   std::uint64_t{slot.head}, std::uint64_t{byte}}) {
    x = (x ^ part) * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
  }
  return static_cast<std::uint8_t>(x >> 40);
}

/// Position of the slot in the request, if it belongs to it.
std::optional<std::uint64_t> position(const Slot& slot, const Cache& cache,
                                      const Request& request) {
  const List& list = request.lists[slot.group];
  const auto it = std::find(list.blocks.begin(), list.blocks.end(), slot.block);
  if (it == list.blocks.end()) return std::nullopt;
  const std::uint32_t tokens_per_block = cache.layout().groups()[slot.group].tokens_per_block;
  const std::uint64_t at =
      static_cast<std::uint64_t>(it - list.blocks.begin()) * tokens_per_block + slot.token;
  if (at < list.skip || at - list.skip >= request.tokens[slot.group]) return std::nullopt;
  return at - list.skip;
}

Memory memory_of(const Cache& cache, std::uint8_t fill) {
  constexpr std::uint64_t margin = 9;  // so that stray writes are seen and not merely crash
  Memory memory;
  for (std::size_t i = 0; i < cache.bases().size(); ++i) {
    const Base& base = cache.bases()[i];
    if (base.region >= memory.size()) memory.resize(base.region + 1);
    const std::uint64_t end = base.offset + cache.layout().region_bytes()[i] + margin;
    if (end > memory[base.region].size()) memory[base.region].resize(end, fill);
  }
  return memory;
}

/// Carries out a plan and counts the writes. False if it reaches beyond a region.
bool carry_out(const Plan& plan, const Memory& src, Memory& dst, Memory& writes) {
  for (const Copy& copy : plan.copies) {
    if (copy.src_region >= src.size() || copy.dst_region >= dst.size()) return false;
    const auto& from = src[copy.src_region];
    auto& to = dst[copy.dst_region];
    if (copy.src_offset + copy.length > from.size()) return false;
    if (copy.dst_offset + copy.length > to.size()) return false;
    std::memcpy(to.data() + copy.dst_offset, from.data() + copy.src_offset, copy.length);
    std::uint8_t* count = writes[copy.dst_region].data() + copy.dst_offset;
    for (std::uint64_t i = 0; i < copy.length; ++i) ++count[i];
  }
  return true;
}

std::string difference(const Memory& got, const Memory& wanted, const char* what) {
  for (std::size_t region = 0; region < got.size(); ++region) {
    const auto& a = got[region];
    const auto& b = wanted[region];
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    if (at == static_cast<std::ptrdiff_t>(a.size())) continue;
    const auto i = static_cast<std::size_t>(at);
    return fmt::format("{} {} instead of {} at offset {} of region {}", what, a[i], b[i], at,
                       region);
  }
  return {};
}

}  // namespace

Cache scattered(const Layout& layout) {
  std::vector<Base> bases;
  for (std::uint32_t i = 0; i < layout.region_bytes().size(); ++i) {
    bases.push_back({i, 5 + 3 * std::uint64_t{i}});
  }
  return Cache::create(layout, std::move(bases)).value();
}

Cache together(const Layout& layout) {
  return Cache::contiguous(layout, {0, 7}).value();
}

Rank::Rank(Cache place, const Request& what)
    : cache(std::move(place)),
      request(what),
      filled(memory_of(cache, noise_byte)),
      blank(memory_of(cache, blank_byte)),
      expected(blank),
      writes(memory_of(cache, 0)) {
  const Walk walk(cache);
  const auto sizes = cache.layout().region_bytes();
  if (!std::equal(walk.sizes.begin(), walk.sizes.end(), sizes.begin(), sizes.end())) {
    throw std::logic_error("Layout::region_bytes() differs from the documented order");
  }
  for (const Slot& slot : walk.slots) {
    const auto at = position(slot, cache, request);
    if (!at) continue;
    const auto& layers = request.layers;
    const bool wanted =
        !layers || (slot.layer >= layers->first && slot.layer < layers->first + layers->count);
    for (std::uint32_t byte = 0; byte < slot.bytes; ++byte) {
      const std::uint64_t offset = slot.offset + byte;
      filled[slot.region][offset] = content(slot, *at, byte);
      if (!wanted) continue;
      expected[slot.region][offset] = content(slot, *at, byte);
      writes[slot.region][offset] = 1;
    }
  }
}

std::vector<Rank> ranks(const std::vector<Group>& groups, std::uint32_t tp_size,
                        const Request& request, bool scatter) {
  std::vector<Rank> all;
  for (std::uint32_t rank = 0; rank < tp_size; ++rank) {
    const Layout layout = Layout::create(groups, {tp_size, rank}).value();
    all.emplace_back(scatter ? scattered(layout) : together(layout), request);
  }
  return all;
}

std::vector<Blocks> blocks_of(const Rank& src, const Rank& dst) {
  std::vector<Blocks> blocks;
  for (std::size_t i = 0; i < src.request.lists.size(); ++i) {
    const List& from = src.request.lists[i];
    const List& to = dst.request.lists[i];
    blocks.push_back({from.blocks, to.blocks, dst.request.tokens[i], from.skip, to.skip});
  }
  return blocks;
}

std::string check(const std::vector<Rank>& src, const std::vector<Rank>& dst) {
  for (const Rank& to : dst) {
    Memory memory = to.blank;
    Memory writes = memory_of(to.cache, 0);
    for (const Rank& from : src) {
      const auto made = plan(from.cache, to.cache, blocks_of(from, to), to.request.layers);
      if (!made) return made.error().to_string();
      if (!carry_out(*made, from.filled, memory, writes)) return "a copy leaves its region";
    }
    std::string wrong = difference(memory, to.expected, "byte");
    if (wrong.empty()) wrong = difference(writes, to.writes, "writes");
    if (!wrong.empty()) {
      return fmt::format("destination rank {}: {}", to.cache.layout().tensor_parallel().rank,
                         wrong);
    }
  }
  return {};
}

}  // namespace weft::kv::oracle
