// All peers of an engine, by link and by name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/descriptor.hpp"
#include "base/sync.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {

/// From any thread.
class PeerTable {
 public:
  void add(const std::shared_ptr<PeerState>& peer) {
    const Lock lock(mutex_);
    by_link_[peer->link] = peer;
  }
  /// The peer may now be found by name, and by accept() if it came by itself.
  void set_up(const std::shared_ptr<PeerState>& peer, bool incoming) {
    const Lock lock(mutex_);
    peer->set_up();
    if (incoming) arrivals_.push_back(peer);
    tell_arrivals();
    came_.notify_all();
  }
  /// accept() need not return it: the caller of connect() has it.
  void claim(LinkId link) {
    const Lock lock(mutex_);
    std::erase_if(arrivals_, [&](const auto& peer) { return peer->link == link; });
    tell_arrivals();
  }
  /// The peer is gone. One that said goodbye may have left signals: accept() still returns it, but
  /// for the oldest of many.
  void remove(LinkId link, bool said_goodbye) {
    const Lock lock(mutex_);
    by_link_.erase(link);
    if (!said_goodbye)
      std::erase_if(arrivals_, [&](const auto& peer) { return peer->link == link; });
    const auto is_gone = [](const auto& peer) { return !peer->up(); };
    if (std::count_if(arrivals_.begin(), arrivals_.end(), is_gone) > most_gone)
      arrivals_.erase(std::find_if(arrivals_.begin(), arrivals_.end(), is_gone));
    tell_arrivals();
  }
  std::shared_ptr<PeerState> find(LinkId link) const {
    const Lock lock(mutex_);
    const auto entry = by_link_.find(link);
    return entry == by_link_.end() ? nullptr : entry->second;
  }
  std::shared_ptr<PeerState> find_up(const std::string& name) const {
    const Lock lock(mutex_);
    return up_as(name);
  }
  /// Null if it was not up by the deadline, or never will be.
  std::shared_ptr<PeerState> wait_up(const std::string& name, Deadline deadline) {
    const Lock lock(mutex_);
    std::shared_ptr<PeerState> peer;
    came_.wait(mutex_, deadline,
               [&]() WEFT_REQUIRES(mutex_) { return closed_ || (peer = up_as(name)); });
    return peer;
  }
  std::vector<std::shared_ptr<PeerState>> all_up() const {
    const Lock lock(mutex_);
    std::vector<std::shared_ptr<PeerState>> peers;
    for (const auto& [link, peer] : by_link_)
      if (peer->up()) peers.push_back(peer);
    return peers;
  }
  /// The oldest arrival not yet returned; null if there was none by the deadline, or ever will be.
  std::shared_ptr<PeerState> next_arrival(Deadline deadline) {
    const Lock lock(mutex_);
    came_.wait(mutex_, deadline,
               [&]() WEFT_REQUIRES(mutex_) { return closed_ || !arrivals_.empty(); });
    if (arrivals_.empty()) return nullptr;
    auto peer = std::move(arrivals_.front());
    arrivals_.pop_front();
    tell_arrivals();
    return peer;
  }
  /// Readable while next_arrival() would not wait.
  int arrivals_fd() const noexcept { return arrived_.get(); }
  /// Arrivals that their mailboxes have dropped, those of peers that are gone too.
  const std::shared_ptr<Mailbox::DropCounter>& dropped_arrivals() const noexcept {
    return dropped_arrivals_;
  }
  void close() {
    const Lock lock(mutex_);
    closed_ = true;
    tell_arrivals();
    came_.notify_all();
  }

 private:
  static constexpr std::ptrdiff_t most_gone = 64;  // arrivals, in programs that never accept

  void tell_arrivals() WEFT_REQUIRES(mutex_) { arrived_.set(closed_ || !arrivals_.empty()); }
  std::shared_ptr<PeerState> up_as(const std::string& name) const WEFT_REQUIRES(mutex_) {
    for (const auto& [link, peer] : by_link_)
      if (peer->up() && peer->introduction.name == name) return peer;
    return nullptr;
  }

  // A peer's handle may outlive the engine.
  const std::shared_ptr<Mailbox::DropCounter> dropped_arrivals_ =
      std::make_shared<Mailbox::DropCounter>();
  mutable Mutex mutex_;
  Condition came_;
  ReadyFd arrived_;  // set() with the mutex
  std::unordered_map<LinkId, std::shared_ptr<PeerState>> by_link_ WEFT_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<PeerState>> arrivals_ WEFT_GUARDED_BY(mutex_);
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::core
