// What a transfer needs of the engine around it.
#pragma once

#include <cstdint>
#include <memory>
#include <weft/transfer.hpp>

namespace weft::core {

class PreparedState;
class TransferState;

/// A transfer calls none of these with its lock held.
class TransferHost {
 public:
  /// There are chunks or proofs to take: offer the transfer to its rails.
  virtual void offer_again(const std::shared_ptr<TransferState>& transfer) = 0;
  /// All bytes are visible: compare them at both ends, then call verified(). Only for transfers
  /// that ask for it.
  virtual void verify(const std::shared_ptr<TransferState>&) {}
  /// All bytes are visible: raise the transfer's signal, then call signal_ended().
  virtual void raise_signal(const std::shared_ptr<TransferState>& transfer) = 0;
  /// The transfer is about to end: free its room before the end can be seen. Called once.
  virtual void transfer_ends(TransferState&) {}
  /// The transfer has ended. Called once, before waiters wake.
  virtual void transfer_ended(TransferState& transfer) = 0;

  /// A thread is about to wait for the transfer, and could do something for it until the deadline.
  virtual void take_part(TransferState&, Deadline /*deadline*/) {}
  /// Enters the copies that were made of a report's bytes. `own`: bytes that this engine has
  /// copied, or had copied.
  virtual void enter_copies(const PreparedState&, std::uint64_t /*own*/, Report&) {}

 protected:
  ~TransferHost() = default;
};

}  // namespace weft::core
