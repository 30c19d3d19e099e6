// One NIC or interface with its endpoint, and everything that uses it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.hpp"
#include "message/messenger.hpp"
#include "providers/endpoint.hpp"
#include "rail/hooks.hpp"
#include "rail/rail_scheduler.hpp"
#include "transfer/placement.hpp"
#include "transport/bounce.hpp"
#include "transport/gpu_copies.hpp"
#include "transport/rma.hpp"

namespace weft::core {

class Worker;

/// All calls by the owning thread, unless they say otherwise.
class Rail {
 public:
  struct Settings {
    RailPlan plan;
    Messenger::Limits messages;
    Bounce::Limits bounce;
  };
  struct Hooks {
    Bounce::FindGrant find_grant;
    Messenger::OnBroken on_broken;
    Messenger::Tell tell;
    FlushArrived flush;
    TransportDecorator decorate;  // mostly empty
  };
  Rail(std::uint32_t index, std::string name, std::unique_ptr<providers::Endpoint> endpoint,
       const Settings& settings, const Hooks& hooks);
  /// Closes the endpoint, which may block, then gives back the chunks that were out.
  ~Rail();
  /// Stops the endpoint, before memory that was registered with it is let go. Afterwards only
  /// settle() and the destructor may be called.
  void shut() { endpoint_->shut(); }
  /// After shut(): waits until no device copies for it any more; false if that is not so in time.
  bool settle(Deadline deadline) {
    return bounce_.settle(deadline) && gpu_copies_.settle(deadline);
  }

  std::uint32_t index() const noexcept { return index_; }
  const std::string& name() const noexcept { return name_; }
  /// Registration and addresses: from any thread.
  providers::Endpoint& endpoint() noexcept { return *endpoint_; }
  /// Of the endpoint.
  const Capability& capability() const noexcept { return capability_; }
  /// The thread that owns it; set once, before any peer is met.
  Worker& worker() const noexcept { return *worker_; }
  void set_worker(Worker& worker) noexcept { worker_ = &worker; }

  const RailPlan& plan() const noexcept { return plan_; }
  /// Bytes of a class's transfers that were submitted to it and have not ended. From any thread.
  std::atomic<std::uint64_t>& queued_bytes(Priority priority) noexcept {
    return queued_bytes_[index_of(priority)];
  }
  /// Bytes of the transfers that a new one of that class has to share with, or to wait for.
  std::uint64_t queued_before(Priority priority) const {
    std::uint64_t bytes = 0;
    for (std::size_t each = 0; each <= index_of(priority); ++each) bytes += queued_bytes_[each];
    return bytes;
  }
  /// Bytes of a transfer that one of its bounce buffers holds. From any thread.
  std::uint64_t bounce_buffer_bytes() const noexcept { return bounce_.buffer_bytes(); }
  RailScheduler& scheduler() noexcept { return scheduler_; }
  const RailScheduler& scheduler() const noexcept { return scheduler_; }
  Messenger& messenger() noexcept { return messenger_; }
  const Messenger& messenger() const noexcept { return messenger_; }

  /// Finds the address of one of the peer's rails, or of one that was opened again. From any
  /// thread; may block. The first call comes before any other thread sees the peer.
  Result<void> reach(const std::shared_ptr<PeerState>& peer, std::uint32_t theirs);

  // To close the endpoint and open it again, in this order (providers::Endpoint::reopens()).
  void suspend();
  /// From any thread; blocks. An error: it is closed, and could not be opened;
  /// `quarantined`: it could not even be closed, and nothing has changed.
  Result<void> reopen();
  /// What was out ends: chunks are offered anew.
  void resume();
  /// A peer's rail was closed and opened again: what was on its way there, or back, may be lost.
  void peer_moved(const PeerState& peer);
  /// How often it was opened again, and whether that failed at last. From any thread.
  std::uint64_t openings() const noexcept { return openings_; }
  bool closed() const noexcept { return closed_; }
  /// It carries nothing at present. From any thread.
  bool away() const noexcept { return suspended_ || closed_; }

  /// Before a segment of that device's is seen by others. May block.
  Result<void> serve(const Device& device) {
    auto served = bounce_.serve(device);
    if (!served || device.kind() != MemoryKind::device) return served;
    return gpu_copies_.serve(device);
  }
  /// Promises receives to a peer that is being met.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token);
  void peer_died(const std::shared_ptr<PeerState>& peer);
  /// The peer's word about requests through bounce buffers (BounceLanes).
  void hear(const PeerState& peer, const BounceCredits& credits);
  /// Gives back what peers have promised and what was not used since the last call, and frees the
  /// buffers that nothing needed since then.
  void tidy();
  /// Buffers and receives. From any thread.
  struct Holding {
    std::uint64_t message_bytes = 0, bounce_bytes = 0;
    std::uint64_t promised = 0, posted = 0;  // receives
  };
  Holding holding() const noexcept {
    return {messenger_.bytes(), bounce_.bytes(), messenger_.promised() + bounce_.promised(),
            messenger_.posted() + bounce_.posted()};
  }
  /// See Rma. From any thread.
  InlineCopied copy_inline(const PreparedState& prepared, const Picks& picks, bool trusted,
                           Clock::time_point until);
  bool copy_inline(const PreparedState& prepared, const Chunk& chunk);
  /// See RailScheduler.
  void begin(const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  /// Pulls, posts and polls once; returns how much happened.
  std::size_t progress(Clock::time_point now);
  /// Whether something may end without a further call.
  bool has_work() const noexcept;
  /// There is no peer and nothing is out: there is no need to look at it.
  bool resting() const noexcept {
    return peers_ == 0 && scheduler_.lost() == 0 && messenger_.idle() && !copying();
  }
  /// A device copies, or ends are held back: nothing wakes the thread when that ends.
  bool copying() const noexcept {
    return bounce_.copying() || gpu_copies_.copying() ||
           std::any_of(decorators_.begin(), decorators_.end(),
                       [](const auto& each) { return each->holds_back(); });
  }
  /// See RailScheduler.
  bool holds_posts() const noexcept { return scheduler_.holds_posts(); }
  std::size_t peers() const noexcept { return peers_; }

  /// From any thread, for reports.
  struct Counters {
    // The owning thread's, which writes them in every round.
    alignas(cache_line) std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> bytes{0}, in_flight{0}, lost{0};
    // On top; those of the threads that submit.
    alignas(cache_line) std::atomic<std::uint64_t> operations_at_once{0};
    std::atomic<std::uint64_t> bytes_at_once{0};

    std::uint64_t all_operations() const noexcept { return operations + operations_at_once; }
    std::uint64_t all_bytes() const noexcept { return bytes + bytes_at_once; }
  };
  const Counters& counters() const noexcept { return counters_; }

 private:
  void count();
  void poll_some();
  std::vector<std::shared_ptr<PeerState>> reached_peers();
  Result<void> find_way(const PeerState& peer, Route& route, std::uint32_t theirs)
      WEFT_REQUIRES(reaching_);
  void bury(const Route& route);
  void reap();

  // First, and so the last to go.
  struct Orphans {
    RailScheduler::Orphans list;
    ~Orphans() {
      for (const auto& [transfer, chunk] : list) transfer->give_back(chunk);
    }
  } orphans_;
  const std::uint32_t index_;
  const std::string name_;
  const RailPlan plan_;
  // Everything below refers to it.
  const std::unique_ptr<providers::Endpoint> endpoint_;
  const Capability& capability_ = endpoint_->capability();
  Worker* worker_ = nullptr;
  Rma rma_;
  Bounce bounce_;
  GpuCopies gpu_copies_;
  const std::vector<std::unique_ptr<Transport>> decorators_;  // around the first two, or none
  RailScheduler scheduler_;
  Messenger messenger_;
  std::size_t peers_ = 0;
  std::vector<std::shared_ptr<PeerState>> dying_;  // gone, with operations outstanding
  std::deque<std::vector<providers::FabricAddress>>
      removed_addresses_;  // addresses of peers that are gone, oldest first
  Mutex reaching_;
  bool reopening_ WEFT_GUARDED_BY(reaching_) = false;
  std::vector<std::weak_ptr<PeerState>> reached_ WEFT_GUARDED_BY(reaching_);
  // Peers have moved from there.
  std::deque<providers::FabricAddress> left_behind_ WEFT_GUARDED_BY(reaching_);
  // Read by the threads that submit, and seldom written.
  alignas(cache_line) std::atomic<bool> suspended_{false};
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> openings_{0};  // written with reaching_
  Counters counters_;
  alignas(cache_line)
      std::array<std::atomic<std::uint64_t>, priorities> queued_bytes_{};  // by index_of()
};

}  // namespace weft::core
