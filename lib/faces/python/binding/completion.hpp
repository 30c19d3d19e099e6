// Tells event loops that something has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/sync.hpp"

namespace weft::python {

/// A descriptor for one event loop, and the numbers of what has ended. From any thread.
class Waker {
 public:
  Waker();
  /// Readable while there are numbers.
  int fd() const noexcept { return event_.get(); }
  void push(std::uint64_t number);
  std::vector<std::uint64_t> take();

 private:
  const core::Descriptor event_;
  core::Mutex mutex_;
  std::vector<std::uint64_t> numbers_ WEFT_GUARDED_BY(mutex_);
};

/// Something that ends once. From any thread.
class Completion {
 public:
  /// Tells all watchers; without effect the second time.
  void end();
  /// False: it has ended already, and nothing will be pushed.
  bool watch(std::shared_ptr<Waker> waker, std::uint64_t number);
  /// Lets go of that waker. The number may have been pushed already.
  void unwatch(const std::shared_ptr<Waker>& waker, std::uint64_t number);

 private:
  core::Mutex mutex_;
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<std::shared_ptr<Waker>, std::uint64_t>> watchers_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::python
