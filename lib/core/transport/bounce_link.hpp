// What both halves of the bounce-buffer transport share: links to peers, buffers, device copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>
#include <weft/deadline.hpp>

#include "message/buffer_pool.hpp"
#include "message/receives.hpp"
#include "transport/staging.hpp"

namespace weft::core {

class PeerState;
struct BounceAnswer;
struct BounceRequest;
struct Route;

/// To one of the peer's rails: what we may ask of it.
struct BounceLane {
  std::size_t credits = 0;   // requests that it takes at a time, ...
  std::size_t used = 0;      // ... and that are under way
  bool asked = false;        // for credits
  bool wanted_back = false;  // by the peer
  bool rests = false;        // unused since the last tidy()
};

/// From one of the peer's rails: what we take from it.
struct BounceGiven {
  std::size_t credits = 0;
  std::size_t wanted = 0;  // it waits for so many
  bool wanted_back = false;
};

/// A peer. There is a receive on the one side for every credit, and one on the other for the answer
/// to every request. So neither side can be overrun, however slow it is.
struct BounceLink {
  std::shared_ptr<PeerState> peer;
  Route& route;
  std::size_t credits = 0;          // requests that it may have from us at a time, ...
  std::size_t credits_used = 0;     // ... and that wait for a lane, or are in one
  std::uint64_t request_bytes = 0;  // most payload of one
  std::size_t request_pieces = 0;   // most pieces of one
  std::uint64_t full_in = 0;        // the last BounceCore::pass in which the provider had no room
  // By the peer's rail: see BounceLanes.
  std::map<std::uint32_t, BounceLane> lanes = {};
  std::map<std::uint32_t, BounceGiven> given = {};
};

/// What follows a device's copy: one of the two goes on.
struct BounceStaged {
  BounceRequest* request = nullptr;
  BounceAnswer* answer = nullptr;
};

/// Between a buffer, in which pieces lie one after the other, and the memory that they are of.
class BufferCopies {
 public:
  enum class Way : bool { out_of_memory, into_memory };

  void begin(Way way, std::byte* buffer) {
    way_ = way;
    buffer_ = buffer;
    copies_.clear();
  }
  void add(std::byte* memory, std::uint64_t bytes) {
    copies_.push_back(way_ == Way::out_of_memory ? Copy{buffer_, memory, bytes}
                                                 : Copy{memory, buffer_, bytes});
    buffer_ += bytes;
  }
  std::span<const Copy> list() const noexcept { return copies_; }
  /// By this thread: Device::direct().
  void copy(const Device& device) const {
    for (const Copy& each : copies_) device.copy(each.to, each.from, each.bytes);
  }

 private:
  Way way_ = Way::out_of_memory;
  std::byte* buffer_ = nullptr;
  std::vector<Copy> copies_;
};

struct BounceCore {
  providers::Endpoint& endpoint;
  const std::uint32_t rail;
  BufferPool sends;
  const std::size_t most_sends;
  Staging<BounceStaged> staging = {};
  BufferCopies copies = {};  // of one message, while it is looked at
  /// Counts the rounds over what the provider had no room for.
  std::uint64_t pass = 0;

  bool has_buffer() const noexcept { return sends.free() > 0 || sends.size() < most_sends; }
  Buffer* take_buffer() { return sends.take_or_grow(most_sends); }
};

}  // namespace weft::core
