// Memory that the owner of a grant has lent to this process, and where this process has mapped it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "device/device.hpp"

namespace weft::core {

/// From any thread. It must be closed before the owner hears that the grant is used no more: it may
/// free the memory then.
class Borrowed {
 public:
  /// The owner's answer. `own`: it is memory of this very process.
  void offer(Lent lent, bool own);
  void refuse(std::string why);

  /// Where the `bytes` of the segment lie for that device's queues. Maps them the first time, which
  /// may block; what failed once is not tried again.
  Result<std::byte*> map(const Device& device, std::uint64_t bytes);
  /// From here on nothing more is mapped. Whether something is, so that close() may block.
  bool stop();
  /// Ends its use. The mappings are gone when it returns, also if another thread closed them.
  void close();
  /// The same for threads that must not block: what is to be closed is so in time.
  static void close_aside(const std::shared_ptr<Borrowed>& borrowed);

 private:
  using Mapping = Result<std::unique_ptr<Device::Mapped>>;

  Mutex mutex_;  // never held while the driver works
  std::optional<Lent> lent_ WEFT_GUARDED_BY(mutex_);
  bool own_ WEFT_GUARDED_BY(mutex_) = false;
  bool mapped_ WEFT_GUARDED_BY(mutex_) = false;  // or about to be
  bool stopped_ WEFT_GUARDED_BY(mutex_) = false;
  Error why_not_ WEFT_GUARDED_BY(mutex_) =
      Error(Code::unsupported, "the owner did not say whether it lends the memory");
  Mutex driver_mutex_;
  std::map<const Device*, Mapping> mappings_ WEFT_GUARDED_BY(driver_mutex_);
};

}  // namespace weft::core
