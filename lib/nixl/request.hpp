// A transfer request of NIXL's: prepared once, posted any number of times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"
#include "nixl/link.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// Its descriptors may lie in many registrations. Those of one registration on each side are one
/// transfer of Weft's, and each of these transfers carries a part of the notification: so it is
/// whole only when all of them are.
///
/// One that was posted is reported to have ended when its local memory is quiescent, too.
class Request : public abi::RequestHandle {
 public:
  Request(LinkPtr link, std::vector<Prepared> batches)
      : link_(std::move(link)), batches_(std::move(batches)) {}

  const LinkPtr& link() const noexcept { return link_; }
  /// How many transfers it is made of, each of which carries a part of a notification.
  std::size_t batches() const noexcept { return batches_.size(); }

  /// `success` if it has ended already. `notification` may be null.
  abi::Status post(const Outgoing* notification);
  /// Never blocks.
  abi::Status check();
  /// Asks for an early end. `success` if nothing can touch the memory any more: then this may be
  /// destroyed. `repost_active` if it is to be asked again. libnixl asks no more once it was told
  /// an error, by this or by check(): then this waits, for some seconds at most, and `backend` says
  /// that it must be kept.
  abi::Status release();

 private:
  enum class Phase : std::uint8_t { idle, under_way, draining, ended };
  abi::Status begin(const Outgoing* notification) WEFT_REQUIRES(mutex_);
  Result<void> send_first_parts(const Outgoing& notification) WEFT_REQUIRES(mutex_);
  Result<void> submit_all(const Outgoing* notification) WEFT_REQUIRES(mutex_);
  abi::Status advance() WEFT_REQUIRES(mutex_);
  abi::Status drain() WEFT_REQUIRES(mutex_);
  void cut_off() WEFT_REQUIRES(mutex_);
  void give_up(Error why) WEFT_REQUIRES(mutex_);
  bool quiescent() WEFT_REQUIRES(mutex_);
  void withdraw() WEFT_REQUIRES(mutex_);
  bool wait_quiescent() WEFT_REQUIRES(mutex_);
  abi::Status end() WEFT_REQUIRES(mutex_);

  const LinkPtr link_;
  const std::vector<Prepared> batches_;
  core::Mutex mutex_;
  Phase phase_ WEFT_GUARDED_BY(mutex_) = Phase::idle;
  std::vector<Transfer> transfers_ WEFT_GUARDED_BY(mutex_);
  std::size_t done_ WEFT_GUARDED_BY(mutex_) = 0;  // of transfers_, the first ones
  // A notification whose parts may have gone.
  std::optional<std::uint64_t> sent_in_parts_ WEFT_GUARDED_BY(mutex_);
  std::optional<Error> error_ WEFT_GUARDED_BY(mutex_);
  Clock::time_point failed_at_ WEFT_GUARDED_BY(mutex_){};
  abi::Status status_ WEFT_GUARDED_BY(mutex_) = abi::Status::success;  // of the end
  bool told_ WEFT_GUARDED_BY(mutex_) = false;  // libnixl knows of an error, and won't ask again
};

}  // namespace weft::nixl
