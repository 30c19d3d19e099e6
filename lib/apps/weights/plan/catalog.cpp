#include "weights/plan/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "weights/plan/apart.hpp"
#include "weights/plan/layout.hpp"
#include "weights/plan/sweep.hpp"

namespace weft::weights {

namespace {

tl::unexpected<Error> refuse(std::string sentence) {
  return fail(Code::invalid_argument, std::move(sentence));
}

struct Entry {
  std::string_view name;
  const Shard* sample;
  std::uint32_t sample_rank;
  Side sample_side;
};

/// Numbers for names, and for each shard of each rank its tensor's number.
class Names {
 public:
  explicit Names(const World& world) : world_(world) {}

  Result<void> read() {
    std::size_t most = 0;
    for (const Rank& rank : world_.subscribers) most = std::max(most, rank.shards.size());
    numbers_.reserve(most);
    // Subscribers first: their tensors, which are planned, have the first numbers.
    if (auto ok = read(Side::subscriber, world_.subscribers, subscribers); !ok) return ok;
    wanted = entries_.size();
    return read(Side::publisher, world_.publishers, publishers);
  }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  std::size_t wanted = 0;                 ///< Tensors that subscribers name.
  std::vector<std::uint32_t> publishers;  ///< Shard by shard, rank by rank.
  std::vector<std::uint32_t> subscribers;

 private:
  Result<void> read(Side side, const std::vector<Rank>& ranks, std::vector<std::uint32_t>& out) {
    std::size_t shards = 0;
    for (const Rank& rank : ranks) shards += rank.shards.size();
    if (shards > std::numeric_limits<std::uint32_t>::max())
      return refuse(fmt::format("There are {} shards, which are too many", shards));
    out.reserve(shards);
    for (std::uint32_t r = 0; r < ranks.size(); ++r)
      for (const Shard& shard : ranks[r].shards) {
        if (const std::string why = objection_to(shard); !why.empty())
          return refuse(fmt::format("{}: tensor {}: {}", ranks[r].name, shard.name, why));
        const std::uint32_t number = number_of(shard, r, side);
        if (auto ok = agrees(ranks[r], shard, entries_[number]); !ok) return ok;
        out.push_back(number);
      }
    return {};
  }

  std::uint32_t number_of(const Shard& shard, std::uint32_t rank, Side side) {
    // Most ranks name tensors in one order.
    if (next_ < entries_.size() && entries_[next_].name == shard.name) return next_++;
    const auto fresh_number = static_cast<std::uint32_t>(entries_.size());
    const auto [it, fresh] = numbers_.try_emplace(shard.name, fresh_number);
    if (fresh) entries_.push_back({shard.name, &shard, rank, side});
    next_ = it->second + 1;
    return it->second;
  }

  Result<void> agrees(const Rank& rank, const Shard& shard, const Entry& entry) const {
    const Shard& other = *entry.sample;
    const auto& side =
        entry.sample_side == Side::publisher ? world_.publishers : world_.subscribers;
    if (shard.dtype != other.dtype)
      return refuse(
          fmt::format("{}: tensor {}: it is {} here and {} at {}; nothing is converted: publish a "
                      "copy in the type that is wanted",
                      rank.name, shard.name, name_of(shard.dtype), name_of(other.dtype),
                      side[entry.sample_rank].name));
    if (shard.shape != other.shape)
      return refuse(fmt::format("{}: tensor {}: its shape is ({}) here and ({}) at {}", rank.name,
                                shard.name, fmt::join(shard.shape, ", "),
                                fmt::join(other.shape, ", "), side[entry.sample_rank].name));
    return {};
  }

  const World& world_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<Entry> entries_;
  std::uint32_t next_ = 0;  // the number behind that of the last shard
};

/// The shards of one side by tensor.
struct Buckets {
  std::vector<std::size_t> starts;  ///< Of each tensor, and the end.
  std::vector<Holder> holders;      ///< By tensor, then by rank.

  Buckets(const std::vector<Rank>& ranks, const std::vector<std::uint32_t>& numbers,
          std::size_t tensors)
      : starts(tensors + 1), holders() {
    for (const std::uint32_t number : numbers)
      if (number < tensors) ++starts[number + 1];
    for (std::size_t t = 0; t < tensors; ++t) starts[t + 1] += starts[t];
    holders.resize(starts.back());
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    std::size_t i = 0;
    for (std::uint32_t r = 0; r < ranks.size(); ++r)
      for (std::uint32_t s = 0; s < ranks[r].shards.size(); ++s, ++i)
        if (numbers[i] < tensors) holders[next[numbers[i]]++] = {r, s};
  }
};

const Shard& shard_of(const std::vector<Rank>& ranks, Holder holder) noexcept {
  return ranks[holder.rank].shards[holder.shard];
}

/// Sorts a tensor's holders by slice, and appends the slices.
std::size_t add_slices(const std::vector<Rank>& ranks, std::span<Holder> holders,
                       std::vector<Slice>& slices) {
  const auto before = [&](Holder a, Holder b) {
    const Shard& x = shard_of(ranks, a);
    const Shard& y = shard_of(ranks, b);
    if (const auto order = x.begin <=> y.begin; order != 0) return order < 0;
    if (const auto order = x.extent <=> y.extent; order != 0) return order < 0;
    return a.rank < b.rank;
  };
  if (!std::is_sorted(holders.begin(), holders.end(), before))
    std::sort(holders.begin(), holders.end(), before);
  const std::size_t first = slices.size();
  for (std::size_t i = 0; i < holders.size();) {
    const Shard& shard = shard_of(ranks, holders[i]);
    std::size_t end = i + 1;
    while (end < holders.size() && shard_of(ranks, holders[end]).begin == shard.begin &&
           shard_of(ranks, holders[end]).extent == shard.extent)
      ++end;
    slices.push_back({{shard.begin, shard.extent}, holders.subspan(i, end - i)});
    i = end;
  }
  return slices.size() - first;
}

Result<void> check_apart(const World& world, const Tensor& tensor) {
  const Sweep sweep(tensor.sources);
  for (std::size_t i = 0; i < tensor.sources.size(); ++i) {
    std::optional<std::size_t> other;
    sweep.visit(tensor.sources[i].box, [&](std::size_t j, const Box&) {
      if (j != i) other = j;
    });
    if (!other) continue;
    const Slice &a = tensor.sources[i], &b = tensor.sources[*other];
    return refuse(
        fmt::format("{}: tensor {}: its slice {} overlaps {} of {}; slices of publishers "
                    "must be the same or apart",
                    world.publishers[a.holders.front().rank].name, tensor.sample->name,
                    text_of(a.box), text_of(b.box), world.publishers[b.holders.front().rank].name));
  }
  return {};
}

Result<void> check_ranks(const char* side, const std::vector<Rank>& ranks) {
  std::unordered_map<std::string_view, std::size_t> names;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Rank& rank = ranks[r];
    if (!names.try_emplace(rank.name, r).second)
      return refuse(fmt::format("{}: two {} have this name", rank.name, side));
    if (rank.nics == 0 || !(rank.gbps > 0))
      return refuse(fmt::format("{}: it has {} NICs of {} Gb/s; both must be above 0", rank.name,
                                rank.nics, rank.gbps));
    if (rank.shards.size() > std::numeric_limits<std::uint32_t>::max())
      return refuse(fmt::format("{}: it has too many shards", rank.name));
  }
  return {};
}

Result<void> check_memory(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) {
    const auto two = shared_bytes(rank);
    if (!two) return fail(two.error());
    if (*two)
      return refuse(fmt::format("{}: tensor {}: it overlaps {} in memory", rank.name,
                                rank.shards[(*two)->first].name, rank.shards[(*two)->second].name));
  }
  return {};
}

}  // namespace

Result<Catalog> Catalog::of(const World& world) {
  if (auto ok = check_ranks("publishers", world.publishers); !ok) return fail(ok.error());
  if (auto ok = check_ranks("subscribers", world.subscribers); !ok) return fail(ok.error());
  Names names(world);
  if (auto ok = names.read(); !ok) return fail(ok.error());
  if (auto ok = check_memory(world.subscribers); !ok) return fail(ok.error());

  Buckets from(world.publishers, names.publishers, names.wanted);
  Buckets to(world.subscribers, names.subscribers, names.wanted);
  Catalog catalog;
  const std::size_t sources = from.holders.size();
  catalog.holders_ = std::move(from.holders);
  catalog.holders_.insert(catalog.holders_.end(), to.holders.begin(), to.holders.end());
  catalog.slices_.reserve(catalog.holders_.size());  // So that spans of it stay.
  catalog.tensors_.reserve(names.wanted);
  const std::span<Holder> holders(catalog.holders_);
  for (std::size_t t = 0; t < names.wanted; ++t) {
    const auto add = [&](const std::vector<Rank>& ranks, const Buckets& buckets,
                         std::size_t shift) {
      const std::size_t begin = buckets.starts[t], count = buckets.starts[t + 1] - begin;
      const std::size_t first = catalog.slices_.size();
      const std::size_t added =
          add_slices(ranks, holders.subspan(shift + begin, count), catalog.slices_);
      return std::span<const Slice>(catalog.slices_).subspan(first, added);
    };
    Tensor tensor{names.entries()[t].sample, add(world.publishers, from, 0),
                  add(world.subscribers, to, sources)};
    if (auto ok = check_apart(world, tensor); !ok) return fail(ok.error());
    catalog.tensors_.push_back(tensor);
  }
  return catalog;
}

}  // namespace weft::weights
