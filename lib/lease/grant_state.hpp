// What a Grant handle stands for, on the owner's side.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>
#include <weft/deadline.hpp>

#include "lease/epoch_words.hpp"
#include "lease/owned_lease.hpp"
#include "memory/segment_state.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

inline bool includes(Rights rights, Rights wanted) noexcept {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(rights) & bits) == bits;
}

/// The owner's side of a grant. Each grant has registrations of its own with exactly its rights, so
/// that closing them cuts off this grant and no other. From any thread.
class GrantState {
 public:
  struct Parts {
    std::shared_ptr<SegmentState> segment;
    GrantDescription description;
    std::vector<std::unique_ptr<providers::Registration>> registrations;
    std::unique_ptr<Epoch> epoch;
    /// Closing the registrations keeps out whatever a peer has posted (FenceScope::grant).
    bool keys_fence = false;
  };
  explicit GrantState(Parts parts);

  SegmentState& segment() const noexcept { return *parts_.segment; }
  const GrantDescription& description() const noexcept { return parts_.description; }
  bool writable() const noexcept { return includes(description().rights, Rights::write); }
  bool keys_fence() const noexcept { return parts_.keys_fence; }

  /// Whether it allows `rights` on these bytes; the relay asks before it touches memory.
  bool allows(Rights rights, std::uint64_t offset, std::uint64_t length) const;

  /// It was not ended, and its time is not over.
  bool held() const;
  Clock::time_point expires() const noexcept { return expires_; }

  // As OwnedLease.
  bool hold(OwnedLease::Holder holder);
  /// Also takes the epoch word down, before it returns.
  std::vector<OwnedLease::Holder> end();
  bool confirmed(OwnedLease::Holder holder);
  void lost(OwnedLease::Holder holder);
  bool over() const;
  /// settle() would find it quiescent, and nothing more is to come.
  bool settleable() const;
  /// Waits until no holder is left that may still confirm. False if the deadline passed first.
  bool wait_confirmed(Deadline deadline) const;

  /// How it stands after its end: closes the keys, which may block, if it is over, and if those
  /// holders who have not confirmed are gone and closing keeps them out. From `quiescent` on the
  /// owner may use the memory for something else.
  Revoked settle();
  /// Closes the keys, which may block. If they fence, and none of the closings fails, nobody can
  /// use the grant any more, whoever has confirmed or not; returns whether that is so.
  bool fence();
  /// Closes the keys because the rails are going.
  void close();

 private:
  bool close_keys();

  Parts parts_;
  const Clock::time_point expires_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  OwnedLease lease_;
  std::mutex keys_mutex_;  // closing them may take long
};

/// Whether one of the sorted ranges holds all of these bytes.
bool covered_by(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t length);

/// Sorts and merges ranges and checks that they lie within `size` bytes; all of it if there are
/// none.
Result<std::vector<Range>> normalise(std::span<const Range> ranges, std::uint64_t size);

}  // namespace weft::core
