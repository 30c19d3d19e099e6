// Notifications that have arrived, from all peers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// Lives on its engine's events, which nothing else polls. From any thread.
class Inbox {
 public:
  explicit Inbox(Engine& engine) : engine_(engine) {}

  /// Appends what is whole. Costs a look at an empty queue where nothing has happened.
  void take(abi::Notifications& arrived);

 private:
  struct Sender {
    Peer peer;
    std::optional<Expectation> expectation;  // of one signal
    Assembly assembly;
  };
  void empty(abi::Notifications& arrived) WEFT_REQUIRES(mutex_);
  void handle(const Event& event, abi::Notifications& arrived) WEFT_REQUIRES(mutex_);
  void met(const Peer& peer) WEFT_REQUIRES(mutex_);
  void signalled(std::uint64_t cookie, abi::Notifications& arrived) WEFT_REQUIRES(mutex_);
  /// False: nothing more can come from it.
  bool await_next(std::uint64_t cookie, Sender& sender);

  Engine& engine_;
  core::Mutex mutex_;
  std::array<Event, 16> events_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t next_ WEFT_GUARDED_BY(mutex_) = 1;
  // By the cookies of their expectations.
  std::map<std::uint64_t, Sender> senders_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
