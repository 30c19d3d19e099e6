/// @file
/// The plan of weights: which rank of a trainer writes which bytes to which inference rank.
///
/// This is arithmetic: no memory is touched, nothing blocks, and every function may be called from
/// any thread. A plan is made once, from what all ranks say about their shards, and is posted again
/// for each version of the weights:
///
/// @code
/// using namespace weft;
/// weights::World world;
/// // Two trainers have the upper and the lower half of a matrix, one inference rank has it whole.
/// const weights::Dims shape{4096, 1024};
/// for (std::uint64_t i = 0; i < 2; ++i)
///   world.publishers.push_back(
///       {.name = "trainer" + std::to_string(i),
///        .shards = {{.name = "w", .shape = shape, .begin = {i * 2048, 0}, .extent = {2048,
///        1024}}}});
/// world.subscribers.push_back(
///     {.name = "decode0",
///      .shards = {{.name = "w", .shape = shape, .begin = {0, 0}, .extent = shape}}});
/// const auto plan = weights::plan(world).value();
/// for (const weights::Transfer& transfer : plan.transfers)
///   ...  // One write from `transfer.from` to `transfer.to`, with a signal.
/// @endcode
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft::weights {

/// Type of an element. Types of less than a byte are described as they are stored: as uint8.
enum class DType : std::uint8_t {
  bf16,
  fp16,
  fp32,
  fp64,
  fp8_e4m3,
  fp8_e5m2,
  e8m0,  ///< The scales of mxfp8 and mxfp4.
  int8,
  int16,
  int32,
  int64,
  uint8,
  boolean,
};

/// Bytes of one element.
WEFT_API std::uint32_t bytes_of(DType type) noexcept;
/// As PyTorch names it, e.g. "bfloat16" and "float8_e4m3fn".
WEFT_API std::string_view name_of(DType type) noexcept;
/// The type of that name. Fails with `not_found`, and lists the names.
WEFT_API Result<DType> dtype_named(std::string_view name);

/// A number for each dimension of a tensor, the outermost first. A scalar has none.
class Dims {
 public:
  /// Convolutions over time and space have five; one more to spare.
  static constexpr std::size_t most = 6;

  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::uint64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  /// More than `most` values are told by size(), and plan() refuses them.
  constexpr explicit Dims(std::span<const std::uint64_t> values)
      : size_(static_cast<std::uint32_t>(values.size())) {
    for (std::size_t i = 0; i < values.size() && i < most; ++i) values_[i] = values[i];
  }

  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr std::uint64_t& operator[](std::size_t i) noexcept { return values_[i]; }
  constexpr std::uint64_t operator[](std::size_t i) const noexcept { return values_[i]; }
  constexpr const std::uint64_t* begin() const noexcept { return values_.data(); }
  constexpr const std::uint64_t* end() const noexcept {
    return values_.data() + (size_ < most ? size_ : most);
  }
  auto operator<=>(const Dims&) const = default;

 private:
  std::uint32_t size_ = 0;
  std::array<std::uint64_t, most> values_ = {};
};

/// The slice of one tensor that a rank holds, and where.
///
/// Names are those that both sides use, e.g. the checkpoint's. A parameter that fuses several
/// tensors (q, k and v in one) is a shard for each of them, at different offsets.
struct Shard {
  std::string name;
  DType dtype = DType::bf16;
  Dims shape;                 ///< Of the whole tensor, in elements.
  Dims begin;                 ///< The first element of the slice, in each dimension.
  Dims extent;                ///< Elements of the slice, in each dimension; at least 1.
  std::uint32_t segment = 0;  ///< The rank's number for the memory, usually of a Segment.
  std::uint64_t offset = 0;   ///< Of the slice's first element in the segment, in bytes.
  /// Bytes from one index to the next, in each dimension. Empty: dense, the last dimension
  /// innermost.
  Dims strides = {};
};

/// One process, its NICs and what it holds.
struct Rank {
  std::string name;       ///< Unlike all others of its side; errors and drawings use it.
  std::string host = {};  ///< Ranks of one host reach each other without a NIC. Empty: alone.
  std::uint32_t nics = 1;
  double gbps = 100;  ///< Of one NIC, in each direction, in 10^9 bits per second.
  std::vector<Shard> shards = {};
};

/// All ranks. Publishers send; the bytes of every subscriber's shards are overwritten.
struct World {
  std::vector<Rank> publishers;
  std::vector<Rank> subscribers;
};

/// `count` runs of `length` bytes, at constant distances on both sides. With a count of 1 the
/// strides are 0. As weft::Pair and weft::Strided.
struct Piece {
  std::uint32_t src_segment = 0;
  std::uint32_t dst_segment = 0;
  std::uint64_t src_offset = 0;
  std::uint64_t dst_offset = 0;
  std::uint64_t length = 0;
  std::uint64_t count = 1;
  std::uint64_t src_stride = 0;
  std::uint64_t dst_stride = 0;

  bool operator==(const Piece&) const = default;
};

enum class Side : std::uint8_t { publisher, subscriber };

/// A rank, by its index in its list of the World.
struct Party {
  Side side = Side::publisher;
  std::uint32_t rank = 0;
  auto operator<=>(const Party&) const = default;
};

/// The pieces that one rank writes to another at once.
///
/// Hop 0 comes from a publisher and may be written immediately. Hop h > 0 comes from a subscriber
/// and passes on what it was sent: it may be written when *all* transfers to `from` with the same
/// chunk and hop h - 1 have arrived. So a counted signal for each (chunk, hop) at each subscriber
/// is all that the ranks need.
struct Transfer {
  Party from;
  std::uint32_t to = 0;  ///< A subscriber.
  std::uint32_t chunk = 0;
  std::uint32_t hop = 0;
  std::uint64_t bytes = 0;
  /// Ordered by source segment, then destination segment, then source offset; what is adjacent on
  /// both sides is joined.
  std::vector<Piece> pieces;
};

/// What one rank sends and receives. What passes between ranks of one host is counted apart: no NIC
/// carries it.
struct Load {
  std::uint64_t sent = 0;  ///< Bytes over NICs.
  std::uint64_t received = 0;
  std::uint64_t sent_on_host = 0;
  std::uint64_t received_on_host = 0;
  std::uint64_t sent_by_nic = 0;  ///< Over each NIC, spread evenly, rounded up.
  std::uint64_t received_by_nic = 0;
  std::uint32_t transfers_sent = 0;
  std::uint32_t transfers_received = 0;
};

/// All transfers between two ranks.
struct PairTotal {
  Party from;
  std::uint32_t to = 0;
  bool on_host = false;
  std::uint32_t transfers = 0;
  std::uint64_t pieces = 0;
  std::uint64_t bytes = 0;
};

/// How bytes reach subscribers that hold the same slices.
enum class FanOut : std::uint8_t {
  automatic,  ///< The one that is predicted to be the faster.
  direct,     ///< Publishers send to each of them.
  chain,      ///< Publishers send each byte once, but small slices. The replicas pass it on along a
              ///< ring, chunk by chunk; each is the first one for its share of the bytes.
};

struct PlanOptions {
  FanOut fan_out = FanOut::automatic;
  /// In a chain: a rank has to receive about so many bytes before it passes them on. Larger ones
  /// begin later, smaller ones are more transfers. A guess: some milliseconds of four NICs of 100
  /// Gb/s.
  std::uint64_t chunk_bytes = std::uint64_t{256} << 20;
  /// In a chain: smaller slices are sent to each replica by publishers, since passing them on costs
  /// more than their bytes. A guess.
  std::uint64_t chain_from_bytes = 64 << 10;
  /// Of a transfer, for the prediction. A guess.
  double seconds_per_transfer = 20e-6;
  /// Between two ranks of one host, in 10^9 bits per second, for the prediction. A guess: links
  /// between GPUs carry more, shared memory carries less.
  double host_gbps = 400;
};

/// Who writes what to whom. Each byte of each subscriber's shards is written once.
struct Plan {
  FanOut fan_out = FanOut::direct;  ///< Never automatic.
  std::uint32_t chunks = 1;
  std::uint32_t hops = 1;           ///< Transfers that the longest way of a byte has.
  std::vector<Transfer> transfers;  ///< Ordered by chunk, hop, from, to. None is empty.
  std::vector<PairTotal> pairs;     ///< Ordered by from, to.
  std::vector<Load> publishers;     ///< In the order of the World.
  std::vector<Load> subscribers;
  std::uint64_t bytes = 0;      ///< That arrive at subscribers.
  std::uint64_t published = 0;  ///< Bytes that publishers send.
  double predicted_seconds = 0;
};

/// Plans for `world`.
///
/// Publishers that hold the same slice of a tensor are replicas and share its bytes: for each slice
/// the one on the receiver's host sends, else the one with the least to send by its NICs.
///
/// The prediction takes each rank's NICs as one queue out and one in, both at full speed at the
/// same time, without a switch that limits them: a transfer ends when both ends have carried it,
/// and one that depends on others begins when they have ended. So it is a lower bound for a real
/// fabric, and good for comparing plans. Compare `weft-perf` on yours.
///
/// Fails with `invalid_argument`, naming tensor and rank, if a slice reaches beyond its tensor; if
/// ranks disagree about a tensor's shape or type (nothing is converted: publish a copy in the type
/// that is wanted); if publishers hold slices that overlap and are not the same; if no publisher
/// has a byte that a subscriber wants; or if shards of a subscriber overlap in memory.
WEFT_API Result<Plan> plan(const World& world, const PlanOptions& options = {});

/// The world as JSON: {"publishers": [RANK...], "subscribers": [RANK...]}, with a rank as
/// {"name", "host", "nics", "gbps", "shards": [{"name", "dtype", "shape", "begin", "extent",
/// "segment", "offset", "strides"}...]}.
WEFT_API std::string to_json(const World& world);
/// Reads what to_json() writes. Lists, "host", "nics", "gbps", "segment", "offset" and "strides"
/// may be missing; so may "begin" and "extent", together, of a whole tensor. Fails with
/// `invalid_argument`, and says where.
WEFT_API Result<World> world_from_json(std::string_view text);

}  // namespace weft::weights
