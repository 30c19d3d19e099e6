// What chunks are handed to. A transport belongs to one rail and is used by its owning thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "peer/route.hpp"
#include "providers/endpoint.hpp"
#include "transfer/cursor.hpp"

namespace weft::core {

class TransferState;
struct BounceRequest;

/// One chunk on its way, or several of a transfer that go together. Its first part is what
/// libfabric sees.
struct Op : providers::Posted {
  TransferState* transfer = nullptr;
  Route* route = nullptr;
  Chunk chunk;                  // the first, or the only one
  std::vector<Chunk> others;    // those that go with it
  std::uint32_t peer_rail = 0;  // that the one-sided transport sent it to
  /// The bounce-buffer transport's, while the provider has no room for it: see give_up().
  BounceRequest* request = nullptr;

  std::size_t chunks() const noexcept { return 1 + others.size(); }
  std::uint64_t bytes() const noexcept {
    std::uint64_t sum = chunk.length;
    for (const Chunk& each : others) sum += each.length;
    return sum;
  }
  /// In their order.
  template <typename Visit>
  void each_chunk(Visit&& visit) const {
    visit(chunk);
    for (const Chunk& each : others) visit(each);
  }
};

/// Learns how what was posted ended, exactly once for each post.
class ChunkSink {
 public:
  virtual void chunk_ended(Op& op, const providers::Completion& completion) = 0;

 protected:
  ~ChunkSink() = default;
};

class Transport {
 public:
  struct Properties {
    /// The rail's NIC carries the bytes.
    bool on_rail = true;
    /// A write whose end is unknown may be carried once more: none of its bytes is written at the
    /// peer after the second attempt has ended.
    bool repeats_writes = true;
  };
  Transport() = default;
  explicit Transport(const Properties& properties) : properties_(properties) {}
  virtual ~Transport() = default;

  const Properties& properties() const noexcept { return properties_; }

  /// Most bytes of a post to that peer.
  virtual std::uint64_t chunk_limit(const Route& route) const = 0;
  /// Most chunks of a transfer in one post to that peer.
  virtual std::size_t most_chunks(const Route&) const { return 1; }
  /// How many posts to that peer it would take now, apart from what the provider has room for.
  virtual std::size_t room(const Route& route) const = 0;
  /// Never waits. After `posted` the sink hears of the end; otherwise it does not.
  virtual providers::Post post(Op& op) = 0;
  /// Posts of data of one transfer, in their order, up to the first that is not posted.
  virtual providers::BatchPost post_all(std::span<Op* const> ops) {
    return providers::post_in_order(ops, [this](Op* op) { return post(*op); });
  }
  /// Whether something of an op that was posted has gone to the provider: false while it waits for
  /// the peer's leave.
  virtual bool went_out(const Op&) const { return true; }
  /// The provider had no room for the op, and it is not posted again.
  virtual void give_up(Op&) {}
  /// Work of its own besides the endpoint's completions; returns how much was done.
  virtual std::size_t progress() { return 0; }
  /// There are ends that only progress() tells of, and nothing wakes the thread for.
  virtual bool holds_back() const noexcept { return false; }
  /// The peer is dead: ends those posts to it that certainly touch no memory of the application's.
  virtual void peer_died(Route&) {}

  void set_sink(ChunkSink& sink) noexcept { sink_ = &sink; }

 protected:
  ChunkSink& sink() const noexcept { return *sink_; }

 private:
  const Properties properties_{};
  ChunkSink* sink_ = nullptr;
};

}  // namespace weft::core
