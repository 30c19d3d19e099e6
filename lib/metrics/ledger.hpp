// An engine's memory of the transfers that have ended.
#pragma once

#include "metrics/slowest.hpp"
#include "metrics/totals.hpp"

namespace weft::core {

class CopiedTransfer;
class TransferState;

/// From any thread.
class Ledger {
 public:
  explicit Ledger(std::size_t rails) : counters_(rails) {}
  /// Of each transfer once, when it has ended.
  void enter(const TransferState& transfer);
  void enter(const CopiedTransfer& transfer);

  const TransferCounters& counters() const noexcept { return counters_; }
  const SlowestTransfers& slowest() const noexcept { return slowest_; }

 private:
  template <typename Transfer>
  void enter(const Transfer& transfer, std::size_t rail, const EndedTransfer& ended,
             Clock::time_point when);

  TransferCounters counters_;
  SlowestTransfers slowest_;
};

}  // namespace weft::core
