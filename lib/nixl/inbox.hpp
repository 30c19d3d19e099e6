// Notifications that have arrived, from all peers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <weft/engine.hpp>

#include "nixl/abi.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// Lives on its engine's events: nobody else polls them. From any thread.
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
  void empty(abi::Notifications& arrived);
  void handle(const Event& event, abi::Notifications& arrived);
  void met(const Peer& peer);
  void signalled(std::uint64_t cookie, abi::Notifications& arrived);
  /// False: nothing more can come from it.
  bool await_next(std::uint64_t cookie, Sender& sender);

  Engine& engine_;
  std::mutex mutex_;
  std::array<Event, 16> events_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Sender> senders_;  // by the cookies of their expectations
};

}  // namespace weft::nixl
