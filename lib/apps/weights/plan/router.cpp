#include "weights/plan/router.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "weights/plan/layout.hpp"

namespace weft::weights {

namespace {

/// More are of little use: the pipeline fills in the time of one chunk.
constexpr std::uint64_t most_chunks = 16;
/// So many parts of a chunk may begin at different replicas, and come from different publishers.
constexpr std::uint64_t parts_of_chunk = 8;
/// Bounds the memory of a plan: these take 7 GB.
constexpr std::uint64_t most_pieces = std::uint64_t{1} << 27;

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Of all ranks. Saturates: a shard alone fits, the sum of bad ones may not.
std::uint64_t greatest_bytes(const std::vector<Rank>& ranks) {
  constexpr std::uint64_t most = std::uint64_t{1} << 63;
  std::uint64_t greatest = 0;
  for (const Rank& rank : ranks) {
    std::uint64_t bytes = 0;
    for (const Shard& shard : rank.shards) bytes = std::min(most, bytes + bytes_of(shard));
    greatest = std::max(greatest, bytes);
  }
  return greatest;
}

}  // namespace

Router::Router(const World& world, const Catalog& catalog, const PlanOptions& options,
               FanOut fan_out)
    : world_(world),
      catalog_(catalog),
      fan_out_(fan_out),
      loads_(world),
      chunk_bytes_(std::max(options.chunk_bytes,
                            divided_up(greatest_bytes(world.subscribers), most_chunks))),
      received_(world.subscribers.size()),
      published_(world.subscribers.size()) {}

Result<std::vector<Transfer>> Router::route() && {
  for (const Tensor& tensor : catalog_.tensors())
    if (auto ok = add(tensor); !ok) return fail(std::move(ok.error()));
  return std::move(transfers_).take();
}

Result<void> Router::add(const Tensor& tensor) {
  const Sweep sources(tensor.sources);
  for (const Slice& sink : tensor.sinks)
    if (auto ok = add(tensor, sources, sink); !ok) return ok;
  return {};
}

Result<void> Router::add(const Tensor& tensor, const Sweep& sources, const Slice& sink) {
  const std::uint32_t element = bytes_of(tensor.sample->dtype);
  const std::uint64_t part_bytes = divided_up(chunk_bytes_, parts_of_chunk);
  const std::uint64_t bytes = volume(sink.box.extent) * element;
  const bool chained = fan_out_ == FanOut::chain && sink.holders.size() > 1;
  const auto ring = chained ? ring_of(sink.holders) : std::vector<Holder>();
  for (const Box& box : cut(sink.box, divided_up(bytes, part_bytes))) {
    const std::uint64_t size = volume(box.extent) * element;
    const Part part{tensor, sources, box, size, next_chunk(sink.holders, size)};
    if (chained) {
      if (auto ok = chain(part, ring); !ok) return ok;
      continue;
    }
    for (const Holder to : sink.holders)
      if (auto ok = publish(part, to); !ok) return ok;
  }
  return {};
}

/// Neighbours in the ring are on one host where possible.
std::vector<Holder> Router::ring_of(std::span<const Holder> replicas) const {
  std::vector<Holder> ring(replicas.begin(), replicas.end());
  std::stable_sort(ring.begin(), ring.end(), [&](Holder a, Holder b) {
    return loads_.host_of({Side::subscriber, a.rank}) < loads_.host_of({Side::subscriber, b.rank});
  });
  return ring;
}

/// By how much the receivers get before it, so that all get about one chunk after the other.
std::uint32_t Router::next_chunk(std::span<const Holder> receivers, std::uint64_t bytes) {
  if (fan_out_ == FanOut::direct) return 0;
  std::uint64_t most = 0;
  for (const Holder& each : receivers) {
    most = std::max(most, received_[each.rank]);
    received_[each.rank] += bytes;
  }
  return static_cast<std::uint32_t>(most / chunk_bytes_);
}

Result<void> Router::publish(const Part& part, Holder to) {
  const Rank& receiver = world_.subscribers[to.rank];
  std::uint64_t elements = 0;
  Result<void> ok;
  part.sources.visit(part.box, [&](std::size_t i, const Box& common) {
    elements += volume(common.extent);
    const Holder from = loads_.sender(part.tensor.sources[i].holders, to.rank);
    const Shard& src = world_.publishers[from.rank].shards[from.shard];
    const TransferTable::Key key{part.chunk, 0, {Side::publisher, from.rank}, to.rank};
    if (ok) ok = copy(key, common, src, receiver.shards[to.shard]);
  });
  if (!ok || elements == volume(part.box.extent)) return ok;
  return fail(
      Code::invalid_argument,
      fmt::format("{}: tensor {}: {} {}", receiver.name, part.tensor.sample->name,
                  part.tensor.sources.empty() ? "no publisher has it"
                                              : "publishers do not have all of its slice",
                  part.tensor.sources.empty() ? ""
                                              : text_of({receiver.shards[to.shard].begin,
                                                         receiver.shards[to.shard].extent})));
}

/// The first one is the replica that has been first for the fewest bytes.
Result<void> Router::chain(const Part& part, std::span<const Holder> ring) {
  const auto first =
      static_cast<std::size_t>(std::min_element(ring.begin(), ring.end(),
                                                [&](Holder a, Holder b) {
                                                  return published_[a.rank] < published_[b.rank];
                                                }) -
                               ring.begin());
  published_[ring[first].rank] += part.bytes;
  auto ok = publish(part, ring[first]);
  for (std::uint32_t hop = 1; ok && hop < ring.size(); ++hop) {
    const Holder from = ring[(first + hop - 1) % ring.size()];
    const Holder to = ring[(first + hop) % ring.size()];
    ok = copy({part.chunk, hop, {Side::subscriber, from.rank}, to.rank}, part.box,
              world_.subscribers[from.rank].shards[from.shard],
              world_.subscribers[to.rank].shards[to.shard]);
  }
  return ok;
}

Result<void> Router::copy(const TransferTable::Key& key, const Box& box, const Shard& src,
                          const Shard& dst) {
  piece_count_ += count_pieces(box, src, dst);
  if (piece_count_ > most_pieces)
    return fail(Code::invalid_argument,
                fmt::format("{}: tensor {}: the plan has more than {} pieces with it: the layouts "
                            "of both sides differ too much",
                            world_.subscribers[key.to].name, dst.name, most_pieces));
  pieces_.clear();
  copy_box(box, src, dst, pieces_);
  const std::uint64_t bytes = volume(box.extent) * bytes_of(dst.dtype);
  loads_.sends(key.from, key.to, bytes);
  transfers_.add(key, pieces_, bytes);
  return {};
}

}  // namespace weft::weights
