#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::weights::test {

namespace {

/// Written apart from the product's: strides of a dense shard.
std::vector<std::uint64_t> strides(const Shard& shard) {
  std::vector<std::uint64_t> result(shard.extent.size());
  std::uint64_t bytes = bytes_of(shard.dtype);
  for (std::size_t d = result.size(); d-- > 0; bytes *= shard.extent[d]) result[d] = bytes;
  for (std::size_t d = 0; d < shard.strides.size(); ++d) result[d] = shard.strides[d];
  return result;
}

/// Calls `visit(offset, element)` for each element of a shard: its place and its number in the
/// whole tensor.
template <typename Visit>
void each_element(const Shard& shard, Visit visit) {
  const auto steps = strides(shard);
  std::vector<std::uint64_t> index(shard.extent.size());
  while (true) {
    std::uint64_t offset = shard.offset, element = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      offset += index[d] * steps[d];
      element = element * shard.shape[d] + shard.begin[d] + index[d];
    }
    visit(offset, element);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == shard.extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// When each byte of a rank has been written: chunk and hop.
using Times = std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint32_t, int>>;

class Carrier {
 public:
  explicit Carrier(const World& world) : world_(world), times_(world.subscribers.size()) {
    for (const Rank& rank : world.publishers) publishers_.emplace_back(rank).fill(rank);
    for (const Rank& rank : world.subscribers) subscribers_.emplace_back(rank);
  }

  std::string carry(const Transfer& transfer) {
    const bool published = transfer.from.side == Side::publisher;
    if (published != (transfer.hop == 0)) return "a hop has the wrong sender";
    Memory& from = (published ? publishers_ : subscribers_)[transfer.from.rank];
    std::uint64_t bytes = 0;
    for (const Piece& piece : transfer.pieces)
      for (std::uint64_t i = 0; i < piece.count; ++i)
        for (std::uint64_t b = 0; b < piece.length; ++b, ++bytes) {
          const std::uint64_t src = piece.src_offset + i * piece.src_stride + b;
          const std::uint64_t dst = piece.dst_offset + i * piece.dst_stride + b;
          if (!published && !arrived(transfer, piece.src_segment, src))
            return fmt::format("subscriber {} passes on what has not arrived", transfer.from.rank);
          if (!times_[transfer.to]
                   .try_emplace({piece.dst_segment, dst}, transfer.chunk,
                                static_cast<int>(transfer.hop))
                   .second)
            return fmt::format("subscriber {}: byte {} is written twice", transfer.to, dst);
          subscribers_[transfer.to].at(piece.dst_segment, dst) = from.at(piece.src_segment, src);
        }
    return bytes == transfer.bytes && bytes > 0 ? "" : "a transfer has a wrong sum";
  }

  std::string compare() const {
    for (std::size_t r = 0; r < subscribers_.size(); ++r)
      if (auto wrong = subscribers_[r].compare(world_.subscribers[r]); !wrong.empty())
        return fmt::format("{}: {}", world_.subscribers[r].name, wrong);
    return {};
  }

 private:
  bool arrived(const Transfer& transfer, std::uint32_t segment, std::uint64_t offset) const {
    const auto& times = times_[transfer.from.rank];
    const auto it = times.find({segment, offset});
    return it != times.end() &&
           it->second == std::pair(transfer.chunk, static_cast<int>(transfer.hop) - 1);
  }

  const World& world_;
  std::vector<Memory> publishers_, subscribers_;
  std::vector<Times> times_;
};

std::string check_totals(const World& world, const Plan& plan) {
  std::uint64_t bytes = 0, published = 0, pairs = 0, sent = 0, received = 0;
  for (const Transfer& transfer : plan.transfers) {
    bytes += transfer.bytes;
    if (transfer.hop == 0) published += transfer.bytes;
    if (transfer.chunk >= plan.chunks || transfer.hop >= plan.hops) return "chunks, or hops";
  }
  for (const PairTotal& pair : plan.pairs) pairs += pair.bytes;
  for (const Load& load : plan.publishers) sent += load.sent + load.sent_on_host;
  for (const Load& load : plan.subscribers) {
    sent += load.sent + load.sent_on_host;
    received += load.received + load.received_on_host;
  }
  if (plan.publishers.size() != world.publishers.size()) return "publishers";
  if (plan.subscribers.size() != world.subscribers.size()) return "subscribers";
  if (bytes != plan.bytes || bytes != pairs || bytes != sent || bytes != received) return "bytes";
  return published == plan.published ? "" : "published";
}

}  // namespace

std::byte pattern(const std::string& tensor, std::uint64_t element, std::uint64_t byte) noexcept {
  std::uint64_t mixed = std::hash<std::string>()(tensor) + element * 8 + byte;
  mixed *= 0x9e3779b97f4a7c15;
  return static_cast<std::byte>(mixed >> 56);
}

Memory::Memory(const Rank& rank) {
  for (const Shard& shard : rank.shards)
    each_element(shard, [&](std::uint64_t offset, std::uint64_t) {
      auto& segment = segments_[shard.segment];
      segment.resize(std::max(segment.size(), offset + bytes_of(shard.dtype)), gap);
    });
}

void Memory::fill(const Rank& rank) {
  for (const Shard& shard : rank.shards)
    each_element(shard, [&](std::uint64_t offset, std::uint64_t element) {
      for (std::uint64_t b = 0; b < bytes_of(shard.dtype); ++b)
        at(shard.segment, offset + b) = pattern(shard.name, element, b);
    });
}

std::string Memory::compare(const Rank& rank) const {
  auto rest = segments_;
  std::string wrong;
  for (const Shard& shard : rank.shards)
    each_element(shard, [&](std::uint64_t offset, std::uint64_t element) {
      for (std::uint64_t b = 0; b < bytes_of(shard.dtype); ++b) {
        std::byte& byte = rest.at(shard.segment).at(offset + b);
        if (byte != pattern(shard.name, element, b) && wrong.empty())
          wrong = fmt::format("{}: element {} has a wrong byte", shard.name, element);
        byte = gap;
      }
    });
  for (const auto& [number, segment] : rest)
    for (const std::byte byte : segment)
      if (byte != gap && wrong.empty()) wrong = "a byte between shards was written";
  return wrong;
}

std::string carry(const World& world, const Plan& plan) {
  Carrier carrier(world);
  for (const Transfer& transfer : plan.transfers)
    if (auto wrong = carrier.carry(transfer); !wrong.empty()) return wrong;
  if (auto wrong = carrier.compare(); !wrong.empty()) return wrong;
  const std::string totals = check_totals(world, plan);
  return totals.empty() ? "" : "totals: " + totals;
}

}  // namespace weft::weights::test
