// A transfer request of NIXL's: prepared once, posted any number of times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"
#include "nixl/link.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// From post to release. One that was posted is reported to have ended when its local memory is
/// quiescent, too. How its bytes go is for the classes below this one to say.
class Request : public std::enable_shared_from_this<Request> {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;

  /// By which its notification goes.
  virtual Result<LinkPtr> link() = 0;
  /// How many transfers it is made of that each carry a part of a notification.
  virtual std::size_t carriers() const noexcept = 0;

  /// `success` if it has ended already. `notification` may be null.
  abi::Status post(const Outgoing* notification);
  /// Never blocks.
  abi::Status check();
  /// Asks for an early end. `success` if nothing can touch the memory any more: then this may be
  /// let go. `repost_active` if it is to be asked again. libnixl asks no more once it was told
  /// an error, by this or by check(): then this waits, for some seconds at most, and `backend` says
  /// that it must be kept.
  abi::Status release();

 protected:
  /// What is begun by an earlier post is over and forgotten.
  virtual Result<void> begin(const Outgoing* notification) WEFT_REQUIRES(mutex_) = 0;
  /// True: all of it is done. Never blocks.
  virtual Result<bool> advance() WEFT_REQUIRES(mutex_) = 0;
  /// None of it is worth anything without the rest.
  virtual void cancel() WEFT_REQUIRES(mutex_) = 0;
  virtual bool quiescent() WEFT_REQUIRES(mutex_) = 0;
  virtual void wait_quiescent(Deadline deadline) WEFT_REQUIRES(mutex_) = 0;
  /// Some time after its failure, what still holds memory.
  virtual void cut_off() WEFT_REQUIRES(mutex_) {}
  /// Whether more will be known of the failure soon.
  virtual bool awaits_news(const Error&) WEFT_REQUIRES(mutex_) { return false; }
  /// What libnixl is told of a failure that the log has as `logged`.
  virtual abi::Status told_as(abi::Status logged) WEFT_REQUIRES(mutex_) { return logged; }
  /// The parts of a notification that have gone are of no use.
  virtual void withdraw() WEFT_REQUIRES(mutex_) {}
  /// "a transfer with agent b", for the log.
  virtual std::string subject() const = 0;
  Clock::time_point failed_at() const WEFT_REQUIRES(mutex_) { return failed_at_; }

  core::Mutex mutex_;

 private:
  enum class Phase : std::uint8_t { idle, under_way, draining, ended };
  abi::Status go_on() WEFT_REQUIRES(mutex_);
  abi::Status drain() WEFT_REQUIRES(mutex_);
  void give_up(Error why) WEFT_REQUIRES(mutex_);
  bool becomes_quiescent() WEFT_REQUIRES(mutex_);
  abi::Status end() WEFT_REQUIRES(mutex_);

  Phase phase_ WEFT_GUARDED_BY(mutex_) = Phase::idle;
  std::optional<Error> error_ WEFT_GUARDED_BY(mutex_);
  Clock::time_point failed_at_ WEFT_GUARDED_BY(mutex_){};
  abi::Status status_ WEFT_GUARDED_BY(mutex_) = abi::Status::success;  // of the end
  bool told_ WEFT_GUARDED_BY(mutex_) = false;  // libnixl knows of an error, and won't ask again
};

/// What libnixl has of one.
struct Handle final : abi::RequestHandle {
  explicit Handle(std::shared_ptr<Request> of) : request(std::move(of)) {}
  const std::shared_ptr<Request> request;
};

}  // namespace weft::nixl
