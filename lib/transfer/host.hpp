// What a transfer needs of the engine around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::core {

class PreparedState;
class TransferState;

class TransferHost {
 public:
  /// All bytes are visible: compare them at both ends, then call verified(). Only for transfers
  /// that ask for it.
  virtual void verify(const std::shared_ptr<TransferState>&) {}
  /// All bytes are visible: raise the transfer's signal, then call signal_ended().
  virtual void raise_signal(const std::shared_ptr<TransferState>& transfer) = 0;
  /// A thread is about to wait for the transfer, and could do something for it until the deadline.
  virtual void take_part(TransferState&, Deadline /*deadline*/) {}
  /// There is something to take again, or only now: offer the transfer to its rails.
  virtual void offer_again(const std::shared_ptr<TransferState>& transfer) = 0;
  /// Over how many of the peer's rails the chunks of this rail went, if their completions do not
  /// prove that the bytes are visible there; else 0.
  virtual std::size_t proofs_of(const TransferState&, std::size_t) const { return 0; }
  /// A rail to carry what none of those that `left` can carry; empty if there is none.
  virtual std::optional<std::size_t> another_rail(const TransferState&,
                                                  const std::vector<std::size_t>&) const {
    return std::nullopt;
  }
  /// What copies were made of the bytes that the report tells of; `own`: bytes that this engine has
  /// copied, or had copied.
  virtual void enter_copies(const PreparedState&, std::uint64_t /*own*/, Report&) {}
  /// What it reads has to be made visible before anybody is told of it.
  virtual bool hides_arrivals(const TransferState&) const { return false; }
  /// All bytes of such a transfer have come: whoever is told so from here on sees them. Takes
  /// microseconds, unless a device hangs.
  virtual Result<void> make_visible(const TransferState&) { return {}; }
  /// It is about to end: what it took of what there is only so much of has to be free before
  /// anybody can see that it has. Called once, with its lock held.
  virtual void transfer_ends(TransferState&) {}
  /// It has reached its end; called once, before waiters wake.
  virtual void transfer_ended(TransferState& transfer) = 0;
  /// Nothing touches memory on its behalf any more, at either side; called once. It may still wait
  /// for its signal to be delivered.
  virtual void memory_let_go(TransferState&) {}
  /// It has ended, let go of its memory, and nobody works on it; called once, last.
  virtual void transfer_quiescent(TransferState&) {}

 protected:
  ~TransferHost() = default;
};

}  // namespace weft::core
