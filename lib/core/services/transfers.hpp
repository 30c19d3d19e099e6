// Preparing and submitting transfers, and what follows their ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include <weft/engine.hpp>

#include "base/small_vector.hpp"
#include "control/control.hpp"
#include "metrics/ledger.hpp"
#include "rail/hooks.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/admission.hpp"
#include "services/call_gate.hpp"
#include "services/event_queue.hpp"
#include "services/inline_copy.hpp"
#include "services/messages.hpp"
#include "services/owner.hpp"
#include "services/paths.hpp"
#include "services/segments.hpp"
#include "services/verification.hpp"
#include "transfer/copied_transfer.hpp"
#include "transfer/placement.hpp"
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
    Segments& segments;
    const Paths& paths;
    Messages& messages;
    Verification& checks;
    EventQueue& events;
    const std::unique_ptr<Ledger>& ledger;         // null where nothing is to be counted
    const std::shared_ptr<ControlPlane>& control;  // null until it has started
  };
  explicit Transfers(const Around& around);

  Result<std::shared_ptr<const PreparedState>> prepare(const std::shared_ptr<SegmentState>& local,
                                                       const std::shared_ptr<RemoteState>& remote,
                                                       Direction direction, PieceList pieces,
                                                       bool contact = false);
  Result<std::shared_ptr<Submitted>> submit(const std::shared_ptr<const PreparedState>& prepared,
                                            const Picks& picks, TransferOptions&& options);
  /// prepare() and submit() in one.
  Result<std::shared_ptr<Submitted>> submit(const std::shared_ptr<SegmentState>& local,
                                            const std::shared_ptr<RemoteState>& remote,
                                            Direction direction, PieceList pieces,
                                            TransferOptions&& options);
  /// Asks each rail of the peer's for an answer that would carry a transfer between the two.
  Result<std::shared_ptr<Submitted>> contact(const std::shared_ptr<SegmentState>& local,
                                             const std::shared_ptr<RemoteState>& remote,
                                             TransferOptions&& options);
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

  static Result<void> check_block(std::uint64_t block, const RailSet& set, const PeerState& peer);
  static Result<void> look_at_reach(PreparedState& prepared);
  Result<void> check_submission(const PreparedState& prepared, const TransferOptions& options,
                                Clock::time_point now);
  Result<std::shared_ptr<Submitted>> submit_prepared(
      const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
      TransferOptions&& options);
  Result<void> admit(const TransferOptions& options);
  void leave_silent_rails(TransferState& transfer);
  Result<TransferShape> shape_of(const PreparedState& prepared, const Picks& picks,
                                 TransferOptions& options, Clock::time_point now);
  /// On the caller's stack, for as many rails as machines have.
  using Loads = SmallVector<RailLoad, 32>;
  Loads loads_of(const RailSet& set, Priority priority, Clock::time_point now) const;
  void start(TransferState& transfer, const Placement& placement, std::span<const RailLoad> chosen);
  bool post_inline(const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  void offer(const std::shared_ptr<TransferState>& transfer);
  bool is_over(const PreparedState& prepared, const TransferShape& shape,
               const InlineCopy::Done& done) const;
  std::shared_ptr<Submitted> ended_inline(CopiedTransfer::Facts facts,
                                          const TransferOptions& options, AdmissionSlot& slot);
  Result<void> look_at_event(TransferOptions& options) const;
  Result<TransportKind> transport_for(const PreparedState& prepared,
                                      const TransferOptions& options) const;

  const Around around_;
  Admission admission_;
  InlineCopy inline_copy_;
};

}  // namespace weft::core
