// What an engine counts: transfers that have ended, what is seldom, and the traffic with each peer.
#pragma once

#include "metrics/rare_events.hpp"
#include "metrics/slowest.hpp"
#include "metrics/totals.hpp"
#include "metrics/traffic_by_peer.hpp"

namespace weft::core {

class CopiedTransfer;
class TransferState;

/// From any thread.
class Ledger {
 public:
  explicit Ledger(std::size_t rails) : counters_(rails), traffic_(rails) {}
  /// Of each transfer once, when it has ended.
  void enter(const TransferState& transfer);
  void enter(const CopiedTransfer& transfer);

  const TransferCounters& counters() const noexcept { return counters_; }
  const SlowestTransfers& slowest() const noexcept { return slowest_; }
  RareEvents& rare() noexcept { return rare_; }
  TrafficByPeer& traffic() noexcept { return traffic_; }

 private:
  template <typename Transfer>
  void enter(const Transfer& transfer, std::size_t rail, const EndedTransfer& ended,
             Clock::time_point when);

  TransferCounters counters_;
  SlowestTransfers slowest_;
  RareEvents rare_;
  TrafficByPeer traffic_;
};

}  // namespace weft::core
