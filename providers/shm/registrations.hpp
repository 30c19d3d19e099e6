// The memory that an endpoint lets its peers reach: the entries of its region.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "providers/endpoint.hpp"
#include "providers/shm/region.hpp"

namespace weft::providers::shm {

class Registrations {
 public:
  /// Whether the process that has a slot has ended.
  using Gone = std::function<bool(const Claim&)>;
  /// Tells the peer with that slot to look which of the entries that it has mapped are closed.
  using Tell = std::function<void(const Claim&)>;
  Registrations(Head& head, Gone gone, Tell tell)
      : head_(head), gone_(std::move(gone)), tell_(std::move(tell)) {}

  /// From any thread, both.
  Result<std::unique_ptr<Registration>> add(const Extent& memory, Access access);
  /// The descriptor of the file that an open entry lies in, as of now.
  Result<int> file_of(std::uint64_t key) const;
  /// Returns when no copy by the key is under way; false if that takes too long.
  bool close(std::uint64_t key);

 private:
  Result<std::size_t> take_index();
  bool wait_for_copies(std::uint64_t key) const;
  void tell_those_who_map();

  Head& head_;
  const Gone gone_;
  const Tell tell_;
  mutable core::Mutex mutex_;  // of what is written to entries, too
  std::vector<std::size_t> free_ WEFT_GUARDED_BY(mutex_);
  std::size_t fresh_ WEFT_GUARDED_BY(mutex_) = 0;  // entries from here on were never used
};

}  // namespace weft::providers::shm
