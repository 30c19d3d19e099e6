// A key by which peers reach one extent of a segment, or a part of it, over one rail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/place.hpp>

#include "base/sync.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

/// One grant has it for itself, or grants with the same rights share it. The key of a shared one is
/// replaced where a holder has to be kept out that does not stop by itself. From any thread.
class ExtentKey {
 public:
  using RegistrationPtr = std::unique_ptr<providers::Registration>;
  enum class Use : std::uint8_t { own, shared };

  /// `base`: where its first byte lies for RMA.
  ExtentKey(std::uint32_t rail, Range part, std::uint64_t base, Use use,
            RegistrationPtr registration)
      : rail_(rail),
        part_(part),
        base_(base),
        use_(use),
        registration_(std::move(registration)),
        last_(registration_->key()) {}

  std::uint32_t rail() const noexcept { return rail_; }
  /// In the segment.
  const Range& part() const noexcept { return part_; }
  std::uint64_t base() const noexcept { return base_; }
  bool shared() const noexcept { return use_ == Use::shared; }

  /// As it is now; as it was last once it is closed.
  std::uint64_t value() const {
    const Lock lock(mutex_);
    return registration_ ? registration_->key() : last_;
  }
  /// Why there is none any more, though grants that have it hold: the rail could not register it
  /// again.
  std::optional<std::string> why_lost() const {
    const Lock lock(mutex_);
    if (why_taken_) return why_taken_;
    const Error* lost = registration_ ? registration_->lost() : nullptr;
    return lost != nullptr ? std::optional(lost->message()) : std::nullopt;
  }
  /// It won't come back when the rail is opened again.
  void retire() {
    const Lock lock(mutex_);
    if (registration_) registration_->retire();
  }
  bool closed() const {
    const Lock lock(mutex_);
    return !registration_;
  }

  /// Keys that come after each other have these numbers, from 0.
  std::uint64_t number() const {
    const Lock lock(mutex_);
    return number_;
  }
  /// Whether the key of that number, and all before it, are closed.
  bool closed_through(std::uint64_t number) const {
    const Lock lock(mutex_);
    return number < first_open_;
  }
  /// Closes the key for good; may block. False if it can't keep out what a peer has begun: it stays
  /// as it is.
  bool close() {
    const Lock lock(mutex_);
    if (!registration_) return true;
    last_ = registration_->key();
    if (!registration_->close()) return false;
    registration_.reset();
    first_open_ = ++number_;
    return true;
  }
  /// The old key, for replaced() once it is closed.
  struct Replaced {
    RegistrationPtr registration;
    std::uint64_t number = 0;
  };
  Replaced replace(RegistrationPtr next) {
    const Lock lock(mutex_);
    return {std::exchange(registration_, std::move(next)), number_++};
  }
  /// There is none to come, for that reason.
  Replaced take(std::string why) {
    const Lock lock(mutex_);
    last_ = registration_->key();
    why_taken_ = std::move(why);
    return {std::move(registration_), number_++};
  }
  void replaced(std::uint64_t number) {
    const Lock lock(mutex_);
    first_open_ = std::max(first_open_, number + 1);
  }
  /// The rails are going: not even a registration that could not be closed may outlive them.
  void drop() {
    const Lock lock(mutex_);
    if (registration_) last_ = registration_->key();
    registration_.reset();
  }

 private:
  const std::uint32_t rail_;
  const Range part_;
  const std::uint64_t base_;
  const Use use_;
  mutable Mutex mutex_;
  RegistrationPtr registration_ WEFT_GUARDED_BY(mutex_);  // null once closed
  std::uint64_t last_ WEFT_GUARDED_BY(mutex_);
  std::optional<std::string> why_taken_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t number_ WEFT_GUARDED_BY(mutex_) = 0, first_open_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::core
