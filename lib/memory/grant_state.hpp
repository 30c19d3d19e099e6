// What a Grant handle stands for, on the owner's side.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "memory/segment_state.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

/// The owner's side of a grant. Each grant has registrations of its own with exactly its rights, so
/// that closing them cuts off this grant and no other where the provider checks keys.
class GrantState {
 public:
  GrantState(std::shared_ptr<SegmentState> segment, GrantDescription description,
             std::vector<std::unique_ptr<providers::Registration>> registrations)
      : segment_(std::move(segment)),
        description_(std::move(description)),
        registrations_(std::move(registrations)) {}

  SegmentState& segment() const noexcept { return *segment_; }
  const GrantDescription& description() const noexcept { return description_; }

  /// Whether it allows `rights` on these bytes; the relay asks before it touches memory.
  bool allows(Rights rights, std::uint64_t offset, std::uint64_t length) const;

  /// Closes the keys.
  void close() {
    const std::lock_guard lock(mutex_);
    registrations_.clear();
  }

 private:
  const std::shared_ptr<SegmentState> segment_;
  const GrantDescription description_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<providers::Registration>> registrations_;
};

/// Whether one of the sorted ranges holds all of these bytes.
bool covered_by(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t length);

/// Sorts and merges ranges and checks that they lie within `size` bytes; all of it if there are
/// none.
Result<std::vector<Range>> normalise(std::span<const Range> ranges, std::uint64_t size);

}  // namespace weft::core
