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
      find_strips();
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
  using Strip = std::vector<std::size_t>;  // fields beside one another

  void find_strips() {
    strips_.clear();
    for (std::size_t field = 0; field < group_->fields.size(); ++field) {
      if (!group_->fields[field].beside) strips_.emplace_back();
      strips_.back().push_back(field);
    }
  }

  void layer_major() {
    switch (group_->regions) {
      case Regions::one:
        region();
        for (auto layer : group_->layers) pools(layer);
        break;
      case Regions::per_layer:
        for (auto layer : group_->layers) {
          region();
          pools(layer);
        }
        break;
      case Regions::per_field:
        for (const Strip& strip : strips_) {
          region();
          for (auto layer : group_->layers) pool(layer, strip);
        }
        break;
      case Regions::per_layer_and_field:
        for (auto layer : group_->layers) {
          for (const Strip& strip : strips_) {
            region();
            pool(layer, strip);
          }
        }
        break;
    }
  }

  void block_major() {
    if (group_->regions != Regions::per_field) region();
    if (group_->placement == Placement::split) {
      for (const Strip& strip : strips_) {
        if (group_->regions == Regions::per_field) region();
        for (std::uint32_t block = 0; block < group_->blocks; ++block) {
          begin_block();
          for (auto layer : group_->layers) page(layer, strip, block);
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

  void pools(std::uint32_t layer) {
    if (group_->placement == Placement::split) {
      for (const Strip& strip : strips_) pool(layer, strip);
      return;
    }
    for (std::uint32_t block = 0; block < group_->blocks; ++block) {
      begin_block();
      pages(layer, block);
      end_block();
    }
  }

  void pool(std::uint32_t layer, const Strip& strip) {
    for (std::uint32_t block = 0; block < group_->blocks; ++block) {
      begin_block();
      page(layer, strip, block);
      end_block();
    }
  }

  void pages(std::uint32_t layer, std::uint32_t block) {
    for (const Strip& strip : strips_) page(layer, strip, block);
  }

  void page(std::uint32_t layer, const Strip& strip, std::uint32_t block) {
    const Field& first = group_->fields[strip.front()];
    const std::uint32_t rows = group_->tokens_per_block == 0
                                   ? first.rows
                                   : group_->tokens_per_block / first.tokens_per_row;
    if (group_->head_order == HeadOrder::nhd) {
      for (std::uint32_t row = 0; row < rows; ++row)
        for (const std::size_t field : strip)
          for (auto head : heads_of_rank(field)) vector(layer, field, block, row, head);
    } else {
      for (auto head : heads_of_rank(strip.front()))
        for (std::uint32_t row = 0; row < rows; ++row)
          vector(layer, strip.front(), block, row, head);
    }
  }

  void vector(std::uint32_t layer, std::size_t field, std::uint32_t block, std::uint32_t row,
              std::uint32_t head) {
    std::uint32_t bits = 0;
    for (const Piece& piece : group_->fields[field].vector)
      bits += piece.elements * bits_of(piece.type);
    const std::uint32_t bytes = bits / 8;
    const Base& base = cache_.bases()[sizes.size()];
    slots.push_back(
        {group_index_, layer, field, block, row, head, bytes, base.region, base.offset + at_});
    at_ += bytes;
  }

  /// Heads and ranks as points on one scale: a rank holds the heads that its share of it meets.
  std::vector<std::uint32_t> heads_of_rank(std::size_t field) const {
    const auto [size, rank] = cache_.layout().parallel().tp;
    const std::uint32_t all = group_->fields[field].heads;
    std::vector<std::uint32_t> heads;
    for (std::uint32_t head = 0; head < all; ++head) {
      const bool ends_before = (head + 1) * size <= rank * all;
      const bool begins_after = head * size >= (rank + 1) * all;
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
  std::vector<Strip> strips_;
  std::uint64_t at_ = 0;
  std::uint64_t block_start_ = 0;
  bool open_ = false;
};

/// The byte that belongs at a place of the request: depends on everything that makes it unique.
std::uint8_t content(const Slot& slot, const std::string& field, std::uint64_t position,
                     std::uint32_t byte) {
  std::uint64_t x = std::hash<std::string>()(field);
  for (const std::uint64_t part :
       {std::uint64_t{slot.layer}, position, std::uint64_t{slot.head}, std::uint64_t{byte}}) {
    x = (x ^ part) * 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
  }
  return static_cast<std::uint8_t>(x >> 40);
}

/// The tokens of a rank's blocks in one group, in the order in which they lie there: counted one by
/// one.
std::vector<std::uint64_t> tokens_of(const Cache& cache, const Group& group, const List& list) {
  const Parallel& parallel = cache.layout().parallel();
  const std::uint32_t turn = parallel.tp.rank % parallel.dcp.size;
  std::vector<std::uint64_t> tokens;
  const std::size_t room = list.ids.size() * group.tokens_per_block;
  for (std::uint64_t token = list.first_token; tokens.size() < room; ++token)
    if (token / parallel.dcp.interleave % parallel.dcp.size == turn) tokens.push_back(token);
  return tokens;
}

/// What a row of the request holds.
struct Row {
  std::uint64_t position = 0;  ///< Unique in the request and the field.
  bool wanted = false;         ///< By the destination.
};

/// The rows of all blocks of a group.
class Rows {
 public:
  Rows(const Cache& cache, const Group& group, const List& list, TokenRange of_request)
      : group_(group), list_(list), tokens_(tokens_of(cache, group, list)) {
    range_ = list.tokens.value_or(of_request);
    if (!list.tokens && group.window != 0 && range_.count > group.window) {
      range_.first += range_.count - group.window;
      range_.count = group.window;
    }
  }

  std::optional<Row> at(const Slot& slot) const {
    const auto it = std::find(list_.ids.begin(), list_.ids.end(), slot.block);
    if (it == list_.ids.end()) return std::nullopt;
    if (group_.tokens_per_block == 0)
      return Row{slot.row, !list_.tokens || list_.tokens->count > 0};
    const std::uint32_t each = group_.fields[slot.field].tokens_per_row;
    const std::size_t first =
        static_cast<std::size_t>(it - list_.ids.begin()) * group_.tokens_per_block +
        slot.row * each;
    Row row{tokens_[first] / each};
    for (std::size_t i = first; i < first + each; ++i)
      row.wanted =
          row.wanted || (tokens_[i] >= range_.first && tokens_[i] < range_.first + range_.count);
    return row;
  }

 private:
  const Group& group_;
  const List& list_;
  std::vector<std::uint64_t> tokens_;
  TokenRange range_;
};

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
  const auto groups = cache.layout().groups();
  std::vector<Rows> rows;
  for (std::size_t i = 0; i < groups.size(); ++i)
    rows.emplace_back(cache, groups[i], request.lists[i], request.tokens);
  for (const Slot& slot : walk.slots) {
    const auto row = rows[slot.group].at(slot);
    if (!row) continue;
    const std::string& name = groups[slot.group].fields[slot.field].name;
    const auto& layers = request.layers;
    const bool in_layers =
        !layers || (slot.layer >= layers->first && slot.layer < layers->first + layers->count);
    const bool wanted = row->wanted && in_layers && !request.unknown.contains({slot.layer, name});
    for (std::uint32_t byte = 0; byte < slot.bytes; ++byte) {
      const std::uint64_t offset = slot.offset + byte;
      filled[slot.region][offset] = content(slot, name, row->position, byte);
      if (!wanted) continue;
      expected[slot.region][offset] = filled[slot.region][offset];
      writes[slot.region][offset] = 1;
    }
  }
}

std::vector<Rank> ranks(const std::vector<Group>& groups, std::uint32_t tp_size,
                        const Request& request, bool scatter, ContextParallel dcp) {
  std::vector<Rank> all;
  for (std::uint32_t rank = 0; rank < tp_size; ++rank) {
    const Layout layout = Layout::create(groups, {{tp_size, rank}, dcp, {}}).value();
    all.emplace_back(scatter ? scattered(layout) : together(layout), request);
  }
  return all;
}

std::vector<Blocks> blocks_of(const Rank& rank) {
  std::vector<Blocks> blocks;
  for (const List& list : rank.request.lists)
    blocks.push_back({list.ids, list.first_token, list.tokens});
  return blocks;
}

Result<Plan> plan_of(const Rank& src, const Rank& dst) {
  return plan(src.cache, blocks_of(src), dst.cache, blocks_of(dst), dst.request.tokens,
              dst.request.layers);
}

std::string check(const std::vector<Rank>& src, const std::vector<Rank>& dst) {
  for (const Rank& to : dst) {
    Memory memory = to.blank;
    Memory writes = memory_of(to.cache, 0);
    for (const Rank& from : src) {
      const auto made = plan_of(from, to);
      if (!made) return made.error().to_string();
      if (!carry_out(*made, from.filled, memory, writes)) return "a copy leaves its region";
    }
    std::string wrong = difference(memory, to.expected, "byte");
    if (wrong.empty()) wrong = difference(writes, to.writes, "writes");
    if (!wrong.empty()) {
      return fmt::format("destination rank {}: {}", to.cache.layout().parallel().tp.rank, wrong);
    }
  }
  return {};
}

}  // namespace weft::kv::oracle
