// A notification on its way: cut into parts, each of which a signal carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <weft/error.hpp>
#include <weft/place.hpp>

namespace weft::nixl {

/// The id of all signals that carry parts.
inline constexpr std::uint64_t notification_signal = 0x6e69786c'6e6f7469;  // "nixlnoti"

/// A notification to send. Part i of `parts()` may go at any time, after any other.
class Outgoing {
 public:
  /// For signals of at most `signal_bytes`, and at least as many parts as there are carriers:
  /// transfers that each carry one.
  static Result<Outgoing> make(std::uint64_t id, const std::string& agent, std::string bytes,
                               std::size_t signal_bytes, std::size_t carriers);

  std::uint64_t id() const noexcept { return id_; }
  std::size_t parts() const noexcept { return parts_; }
  /// The first so many have no carrier. Those behind them have one each.
  std::size_t parts_ahead() const noexcept { return parts_ - carriers_; }
  Blob part(std::size_t index) const;

 private:
  Outgoing(std::uint64_t id, std::string agent, std::string bytes, std::size_t slice,
           std::size_t parts, std::size_t carriers)
      : id_(id),
        agent_(std::move(agent)),
        bytes_(std::move(bytes)),
        slice_(slice),
        parts_(parts),
        carriers_(carriers) {}
  std::uint64_t id_;
  std::string agent_;
  std::string bytes_;
  std::size_t slice_;
  std::size_t parts_;
  std::size_t carriers_;  // no more than parts
};

/// The word that the other parts won't come.
Blob withdrawal(std::uint64_t id);

struct Notification {
  std::string agent;
  std::string bytes;
};

/// Parts that have arrived from one sender and are not whole yet.
class Assembly {
 public:
  /// Takes a part, and returns the notification that it was the last of. What is no part, or does
  /// not fit the others, is dropped.
  std::optional<Notification> take(const Blob& part);

 private:
  struct Open {
    std::uint32_t parts = 0;
    std::string agent;
    std::map<std::uint32_t, std::string> slices;  // as many as have come
  };
  std::map<std::uint64_t, Open> open_;
};

}  // namespace weft::nixl
