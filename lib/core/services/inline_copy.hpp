// Inline copies: transfers that the application's own threads copy, at submission and while they
// wait, where memory is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "rail/rails.hpp"
#include "services/admission.hpp"
#include "services/open_to_waiters.hpp"
#include "transfer/placement.hpp"
#include "transfer/wait_predictor.hpp"

namespace weft::core {

/// From any thread. When to copy is decided by placement.hpp; this knows the caller, and copies.
class InlineCopy {
 public:
  struct Options {
    std::uint64_t most_bytes = 0;  // 0: callers copy nothing
    bool caller_drives = false;    // Progress::manual
    bool trusts_reads = false;     // they need no proof of their lease: for measurements only
  };
  /// `rails` are opened later.
  InlineCopy(const Options& options, const Rails& rails);

  /// For what it prepares.
  const std::shared_ptr<WaitPredictor>& predictor() const noexcept { return predictor_; }
  /// The calling thread, which submits that, and has entered it.
  Caller caller(const TransferShape& shape, const Admission& admission) const;

  struct Request {
    const PreparedState& prepared;
    Picks picks;
    Clock::time_point submitted, until;
  };
  struct Done {
    std::size_t rail = 0;  // by which it was copied
    InlineCopied copied = {};
  };
  /// Copies what it can before `until`, if the caller should; nullopt: the rails carry all.
  std::optional<Done> submit(const TransferShape& shape, const RailPlan& rail, const Caller& caller,
                             const Request& request);
  /// It has ended before the application has it.
  void ended_unseen(const TransferShape& shape, Clock::time_point submitted);
  /// The application is about to have it, so that its wait says something.
  void at_hand(TransferState& transfer) const;

  /// Threads that wait may help with it from here on.
  void open(std::shared_ptr<TransferState> transfer) { open_.add(std::move(transfer)); }
  /// It has ended.
  void close(const TransferState& transfer) { open_.remove(transfer); }
  /// By a thread that waits for the transfer. Once nothing of it is left to copy, others get on.
  void help(TransferState& transfer, Deadline deadline);

 private:
  bool depends_on_waits(const TransferShape& shape) const;
  std::optional<std::size_t> rail_to_copy_by(const PreparedState& prepared,
                                             Clock::time_point now) const;
  std::uint64_t copy_some(TransferState& transfer);

  const Options options_;
  const std::uint64_t small_;  // waits for larger ones say something
  const Rails& rails_;
  const std::shared_ptr<WaitPredictor> predictor_;
  OpenToWaiters open_;
};

}  // namespace weft::core
