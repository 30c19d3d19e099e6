// A rail's share of the work: pulls chunks out of transfers while the window to their peer has
// room.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rail/fair_queue.hpp"
#include "transfer/placement.hpp"
#include "transfer/transfer_state.hpp"
#include "transport/transport.hpp"

namespace weft::core {

/// Used by the rail's owning thread only. Peers take turns, and one whose window is full is
/// skipped, however many transfers wait for it. FairQueue decides among the transfers to one peer.
class RailScheduler final : private ChunkSink {
 public:
  using Window = core::Window;
  RailScheduler(std::size_t rail, std::string rail_name, Window window, Transport& one_sided,
                Transport& bounce, Transport& gpu_copies);

  /// Starts to pull from a transfer that counts on this rail (TransferState::start), or comes back
  /// to one whose chunks were returned.
  void add(std::shared_ptr<TransferState> transfer);
  /// As add(), but what there is room for goes out now, unless others wait for their turn.
  void begin(const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  /// Posts what there is room for; returns how many chunks.
  std::size_t pump(Clock::time_point now = Clock::now());
  /// Lets the transports work; returns how much they did.
  std::size_t progress();
  /// The transfer is past its deadline. If chunks of it are out on the route to a peer, the route
  /// is set aside.
  void timed_out(const TransferState& transfer);
  /// No chunk that is out ends: the routes that they are out on are set aside.
  void went_silent();
  /// Writes off the chunks to a dead peer: they hold their memory, but take no room in the window.
  void peer_died(Route& route);

  /// The chunks that are out, with their transfers: to be given back once the endpoint is closed
  /// and nothing can touch their memory any more. Nothing else may be called afterwards.
  using Orphans = std::vector<std::pair<std::shared_ptr<TransferState>, Chunk>>;
  Orphans take_orphans();

  bool has_work() const noexcept { return in_flight_ > 0 || !queues_.empty(); }
  /// The provider has had no room for some posts, and does not tell when it has.
  bool holds_posts() const noexcept { return !held_.empty(); }
  std::uint64_t in_flight() const noexcept { return in_flight_; }
  std::uint64_t operations_done() const noexcept { return operations_done_; }
  std::uint64_t bytes_done() const noexcept { return bytes_done_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  enum class Way { one_sided, bounce, device_copy };
  static constexpr std::size_t ways = 3;
  static constexpr std::size_t index(Way way) { return static_cast<std::size_t>(way); }
  static Way way_of(const TransferState& transfer);
  Transport& transport_of(Way way) const { return *transports_[index(way)]; }
  /// An op with what the scheduler keeps of it. The transports see the op alone.
  struct Entry : Op {
    Transport* transport = nullptr;
    bool out = false;                // posted, and not ended
    bool spare = false;              // in the room that is kept for class latency
    Clock::time_point held_since{};  // where the provider had no room for it
  };
  static Entry& entry(Op& op) { return static_cast<Entry&>(op); }
  /// What waits to go one way to one peer.
  struct Queue {
    Queue(Route& route, Transport& transport, Way way)
        : route(route), transport(transport), way(way) {}
    Route& route;
    Transport& transport;
    const Way way;
    FairQueue turns;
    bool listed = false;  // in queues_
  };
  using Queues = std::list<Queue>;
  /// Room for so many chunks.
  struct Room {
    std::size_t chunks = 0;
    bool spare = false;  // only class latency may have it
  };
  struct Pulled {
    enum class Rest { some, none, proof_later } rest;  // what the transfer still has to send
    std::int64_t cost = 0;                             // of what was sent: FairQueue::cost_of()
  };

  void chunk_ended(Op& op, const providers::Completion& completion) override;
  Route* living_route(const TransferState& transfer) const;
  Queues::iterator queue_to(Route& route, Way way);
  void add_to(Queues::iterator queue, std::shared_ptr<TransferState> transfer);
  void forget(const TransferState& transfer);
  void forget(const Route& route);
  bool take_turn(Queue& queue);
  static std::uint64_t chunk_of(const TransferState& transfer, const Queue& queue);
  std::size_t chunks_of_turn(const TransferState& transfer, const Queue& queue) const;
  Pulled pull(const Queue& queue, TransferState& transfer, Room room);
  struct Sent {
    std::size_t posts = 0;
    std::int64_t cost = 0;
    bool all = false;   // there is no more of the transfer
    bool left = false;  // the rail can't carry it any more
  };
  Sent send_singly(const Queue& queue, TransferState& transfer, Room room);
  Sent send_together(const Queue& queue, TransferState& transfer, Room room);
  Pulled::Rest pull_proof(const Queue& queue, TransferState& transfer, Room room);
  using Chunks = std::span<const Chunk>;
  bool send_off(TransferState& transfer, Route& route, Transport& transport, Chunks chunks,
                bool spare);
  bool send_off(std::span<Op* const> ops);
  void leave(TransferState& transfer, Chunks chunks, const Error& why);
  void path_failed(TransferState& transfer, Route& route, Chunks chunks, const Error& error);
  static bool may_repeat(const Entry& op);
  static bool bound(const TransferState& transfer, const Chunk& chunk);
  void cut(TransferState& transfer, Route& route, Chunks chunks, const Error& error);
  void failed(Entry& op, const providers::Completion& completion);
  Room room(const Queue& queue, bool urgent) const;
  std::size_t room(const Transport& transport, const Route& route) const;
  std::size_t spare_room(const Transport& transport, const Route& route) const;
  enum class Fate { posted, held, failed };
  Fate try_post(Entry& op);
  void hold(Entry& op);
  std::size_t retry_held();
  bool passed_on(Entry& op);
  void return_unsent(Entry& op);
  void post_failed(Entry& op, const providers::Post& post);
  Op& make_op(TransferState& transfer, Route& route, Transport& transport, Chunks chunks,
              bool spare);
  void free_op(Entry& op);
  Error error_of(const Op& op, const providers::Completion& completion) const;

  const std::size_t rail_;
  const std::string rail_name_;
  const Window window_;
  const std::array<Transport*, ways> transports_;  // by Way

  Queues queues_;   // those with transfers, in the order of their turns
  Queues resting_;  // those without
  std::unordered_map<const Route*, std::array<Queues::iterator, ways>> queues_to_;  // by Way
  std::deque<Entry*> held_;  // taken, and refused by the provider for want of room
  std::uint64_t in_flight_ = 0, spare_in_flight_ = 0;
  std::deque<Entry> ops_;  // grows to the window, and by what dead peers hold
  std::vector<Entry*> free_ops_;
  // Chunks taken from one transfer before the next one has its turn. Few, so that rails share a
  // transfer evenly; more than one, so that small chunks do not pay for a lock each.
  static constexpr std::size_t batch = 8;
  std::array<Chunk, batch> singly_;  // what is about to go, each in a post of its own
  std::vector<Chunk> together_;      // what is about to go in one post
  Clock::time_point now_{};          // when pump() or begin() was called
  std::uint64_t operations_done_ = 0, bytes_done_ = 0, lost_ = 0;
};

}  // namespace weft::core
