// Preparing and submitting transfers, and what follows their ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include <weft/engine.hpp>

#include "control/control.hpp"
#include "engine/admission.hpp"
#include "engine/call_gate.hpp"
#include "engine/event_queue.hpp"
#include "engine/hooks.hpp"
#include "engine/messages.hpp"
#include "engine/open_to_waiters.hpp"
#include "engine/owner.hpp"
#include "engine/paths.hpp"
#include "engine/rails.hpp"
#include "engine/verification.hpp"
#include "engine/workers.hpp"
#include "metrics/ledger.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {

/// Any thread submits; TransferHost's calls come from the threads that carry transfers, and from
/// those that end them.
class Transfers final : public TransferHost {
 public:
  struct Around {
    const Config& config;
    const EngineHooks& hooks;
    const Owner& owner;
    CallGate& gate;
    const Rails& rails;
    Workers& workers;
    const Paths& paths;
    Messages& messages;
    Verification& checks;
    EventQueue& events;
    const std::unique_ptr<Ledger>& ledger;         // null where nothing is to be counted
    const std::unique_ptr<ControlPlane>& control;  // null until it has started
  };
  explicit Transfers(const Around& around);

  Result<std::shared_ptr<const PreparedState>> prepare(const std::shared_ptr<SegmentState>& local,
                                                       const std::shared_ptr<RemoteState>& remote,
                                                       Direction direction, PieceList pieces);
  Result<std::shared_ptr<Submitted>> submit(const std::shared_ptr<const PreparedState>& prepared,
                                            const Picks& picks, TransferOptions&& options);
  std::size_t active() const noexcept { return admission_.taken(); }
  /// The engine closes: calls that wait for room give up.
  void close() { admission_.close(); }

 private:
  // TransferHost
  void verify(const std::shared_ptr<TransferState>& transfer) override;
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override;
  void take_part(TransferState& transfer, Deadline deadline) override;
  void offer_again(const std::shared_ptr<TransferState>& transfer) override;
  void transfer_ends(TransferState& transfer) override;
  void transfer_ended(TransferState& transfer) override;
  void enter_copies(const PreparedState& prepared, std::uint64_t own, Report& report) override;

  Result<void> check_submission(const PreparedState& prepared, const TransferOptions& options,
                                Clock::time_point now);
  Result<std::shared_ptr<Submitted>> submit_prepared(
      const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
      TransferOptions&& options);
  Result<void> admit(const TransferOptions& options);
  void leave_silent_rails(TransferState& transfer);
  /// Whether a transfer of that class meets no other on any of them.
  bool idle(std::span<const std::size_t> rails, Priority priority) const;
  std::uint64_t rails_wanted(std::span<const std::size_t> all, std::uint64_t bytes,
                             Priority priority) const;
  std::span<const std::size_t> choose_rails(const RailSet& set, std::uint64_t bytes,
                                            Priority priority, Clock::time_point now,
                                            std::vector<std::size_t>& several) const;
  bool begin_at_once(const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  Result<void> look_at_event(TransferOptions& options) const;
  Result<TransportKind> transport_for(const PreparedState& prepared,
                                      const TransferOptions& options) const;

  // at_once.cpp
  /// What is asked for, with all that has been found out about it.
  struct Asked {
    const std::shared_ptr<const PreparedState>& prepared;
    const Picks& picks;
    const TransferOptions& options;
    TransportKind transport;
    std::uint64_t bytes;
    Clock::time_point submitted, begun, deadline;  // waits for room lie between the first two
    std::size_t ranges() const { return picks ? picks->size() : prepared->pieces.size(); }
  };
  struct AtOnce {
    std::size_t rail = 0;
    CopiedAtOnce copied = {};
  };
  std::uint64_t always_at_once(Priority priority) const;
  std::uint64_t always_at_once(const Asked& asked) const;
  std::uint64_t at_once_if_waited_for() const;
  std::uint64_t at_once_if_promptly_waited_for(const PreparedState& prepared) const;
  bool waits_for_each(const TransferOptions& options) const;
  bool caller_may_copy(const Asked& asked) const;
  bool at_once_by_kernel(const Asked& asked) const;
  bool at_once(const Asked& asked) const;
  std::optional<std::size_t> rail_to_copy_by(const PreparedState& prepared,
                                             Clock::time_point now) const;
  AtOnce copy_at_once(const Asked& asked);
  bool waiter_may_copy(const Asked& asked, std::span<const std::size_t> rails) const;
  std::uint64_t least_open_to_waiters(const PreparedState& prepared) const;
  std::uint64_t copy_some(TransferState& transfer);
  bool is_over(const Asked& asked, const AtOnce& done) const;
  std::shared_ptr<Submitted> ended_at_once(const Asked& asked, const AtOnce& done,
                                           AdmissionSlot& slot);
  void ended_unseen(const Asked& asked);

  const Config& config_;
  const EngineHooks& hooks_;
  const Owner& owner_;
  CallGate& gate_;
  const Rails& rails_;
  Workers& workers_;
  const Paths& paths_;
  Messages& messages_;
  Verification& checks_;
  EventQueue& events_;
  const std::unique_ptr<Ledger>& ledger_;
  const std::unique_ptr<ControlPlane>& control_;
  Admission admission_;
  OpenToWaiters open_to_waiters_;
  const std::shared_ptr<Attention> attention_;
};

}  // namespace weft::core
