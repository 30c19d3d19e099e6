#include "shared_endpoints.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace weft::providers {
namespace {

struct Kept {
  std::mutex mutex;
  std::size_t open = 0;
  std::vector<std::shared_ptr<void>> handles;
};

// Never destroyed: engines may be closed while statics go away.
Kept& kept() {
  static auto* instance = new Kept;
  return *instance;
}

}  // namespace

SharedEndpoint::SharedEndpoint() {
  const std::lock_guard lock(kept().mutex);
  ++kept().open;
}

SharedEndpoint::~SharedEndpoint() {
  std::vector<std::shared_ptr<void>> closing;
  const std::lock_guard lock(kept().mutex);
  if (--kept().open == 0) closing = std::exchange(kept().handles, {});
}

void SharedEndpoint::keep(std::shared_ptr<void> handles) {
  const std::lock_guard lock(kept().mutex);
  kept().handles.push_back(std::move(handles));
}

}  // namespace weft::providers
