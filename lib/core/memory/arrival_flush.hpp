// Makes bytes that NICs wrote into devices' memory visible there before their arrival is reported.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "device/device.hpp"

namespace weft::core {

/// Called before an arrival is reported. Must not block for long.
using FlushArrived = std::function<Result<void>()>;

/// The devices of an engine whose memory peers may write over NICs, and that need a flush. From any
/// thread.
class ArrivalFlush {
 public:
  /// Before a peer learns of the memory. It stays for good: a few devices, and what was written
  /// under a grant may arrive after that has ended.
  void add(const Device& device) {
    if (!device.needs_flush()) return;
    const Lock lock(mutex_);
    if (std::find(devices_.begin(), devices_.end(), &device) == devices_.end())
      devices_.push_back(&device);
    any_ = true;
  }
  /// Costs some microseconds for each device, and nothing where none needs it.
  Result<void> flush() const {
    if (!any_) return {};
    std::vector<const Device*> devices;
    {
      const Lock lock(mutex_);
      devices = devices_;
    }
    for (const Device* device : devices)
      if (auto flushed = device->flush(); !flushed) return flushed;
    return {};
  }

 private:
  mutable Mutex mutex_;
  std::vector<const Device*> devices_;
  std::atomic<bool> any_{false};
};

}  // namespace weft::core
