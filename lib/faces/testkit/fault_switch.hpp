// The faults that the rails of some engines have, which change while they run.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <weft/testkit.hpp>

#include "base/sync.hpp"

namespace weft::core {

/// From any thread.
class FaultSwitch {
 public:
  void set(const testkit::Fault& fault) {
    const Lock lock(mutex_);
    all_ = fault;
    by_rail_.clear();
    ++version_;
  }
  void set(std::size_t rail, const testkit::Fault& fault) {
    const Lock lock(mutex_);
    by_rail_[rail] = fault;
    ++version_;
  }
  testkit::Fault of(std::size_t rail) const {
    const Lock lock(mutex_);
    const auto own = by_rail_.find(rail);
    return own == by_rail_.end() ? all_ : own->second;
  }
  /// Changes with each set().
  std::uint64_t version() const noexcept { return version_; }

  struct Counts {
    std::atomic<std::uint64_t> delayed{0}, reordered{0}, again{0}, refused{0}, failed{0},
        duplicated{0}, dropped{0};
  };
  Counts counts;

 private:
  mutable Mutex mutex_;
  testkit::Fault all_ WEFT_GUARDED_BY(mutex_);
  std::map<std::size_t, testkit::Fault> by_rail_ WEFT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace weft::core
