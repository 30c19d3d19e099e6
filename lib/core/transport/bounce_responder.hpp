// Carries out what peers ask for through bounce buffers, and answers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lease/grant_state.hpp"
#include "memory/arrival_flush.hpp"
#include "transport/bounce_format.hpp"
#include "transport/bounce_link.hpp"
#include "transport/slot_table.hpp"

namespace weft::core {

/// A peer's request, until its answer has arrived there: the peer's credit comes back with it.
struct BounceAnswer {
  enum class Phase : std::uint8_t {
    copying_in,   // a device copies the bytes into the granted memory
    waiting,      // for a buffer; from `due` on
    copying_out,  // a device copies the bytes that are read into the buffer
    ready,        // the buffer is filled, and the provider has no room yet
    sent,         // and not known to have arrived
  };
  std::uint64_t number = 0;
  BounceLink* link = nullptr;  // null: the peer is gone
  Phase phase = Phase::waiting;
  std::uint32_t rail = 0;  // of the peer's, which asked
  std::uint64_t operation = 0;
  Code status{};    // Code{}: carried out
  std::string why;  // otherwise, in words; mostly empty
  Priority priority = Priority::normal;
  std::uint64_t lease = 0;
  std::vector<Range> reads;           // the pieces that are asked for
  std::shared_ptr<GrantState> grant;  // while a device copies: in its copying()
  Buffer* buffer = nullptr;           // of the request while copying_in, then of the answer
  std::size_t bytes = 0;              // in it, behind the head
  Nanoseconds pause{};                // before it is sent again
  Clock::time_point due{};
};

class BounceResponder final : private providers::CompletionHandler {
 public:
  /// Finds a grant of this engine by its lease; null if there is none (any more).
  using FindGrant = std::function<std::shared_ptr<GrantState>(std::uint64_t lease)>;

  /// `buffer_bytes`: most payload of a request.
  BounceResponder(BounceCore& core, std::uint64_t buffer_bytes, FindGrant find_grant,
                  FlushArrived flush)
      : core_(core),
        buffer_bytes_(buffer_bytes),
        find_grant_(std::move(find_grant)),
        flush_(std::move(flush)) {}

  Received requested(BounceLink& link, Buffer& buffer, const BounceMessage& message);
  /// A device's copy for it has ended; with an error if it could not be carried out. Returns the
  /// request's buffer if that was kept until now.
  Buffer* copied(BounceAnswer& answer, const std::optional<Error>& error);
  /// A device has failed during the copy. Memory and buffer are held for ever, and the peer is
  /// told.
  void lost(const BounceAnswer& answer, const Error& error);
  /// Answers what it can; returns how many.
  std::size_t progress();
  void peer_died(const BounceLink& link);
  bool has_work() const noexcept { return !due_.empty(); }

 private:
  using Phase = BounceAnswer::Phase;
  using Way = BufferCopies::Way;

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  bool advance(BounceAnswer& answer);
  bool may_begin(const BounceAnswer& answer) const;
  void carry_out(BounceAnswer& answer, Buffer& buffer, const BounceMessage& message);
  std::shared_ptr<GrantState> allowed(BounceAnswer& answer, Rights rights,
                                      std::span<const Range> pieces) const;
  const Device& list_copies(Way way, const GrantState& grant, std::span<const Range> pieces,
                            std::byte* buffer);
  void write_in(BounceAnswer& answer, Buffer& buffer, const BounceMessage& message);
  void read_out(BounceAnswer& answer);
  void refuse(BounceAnswer& answer, const Error& error) const;
  bool send(BounceAnswer& answer);
  void send_again(BounceAnswer& answer);
  BounceAnswer& begin(BounceLink& link, std::uint32_t rail, std::uint64_t operation);
  void release(BounceAnswer& answer);

  BounceCore& core_;
  const std::uint64_t buffer_bytes_;
  const FindGrant find_grant_;
  const FlushArrived flush_;
  SlotTable<BounceAnswer> answers_;
  std::deque<BounceAnswer*> due_;  // those waiting and ready, in their order
  std::vector<Range> asked_;       // the pieces of one request, while it is looked at
};

}  // namespace weft::core
