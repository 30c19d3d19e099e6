#include "providers/libfabric/shared_endpoints.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/sync.hpp"

namespace weft::providers {
namespace {

using Handles = std::shared_ptr<void>;

struct Registry {
  core::Mutex mutex;
  // Known by each open endpoint.
  std::map<std::string, std::set<std::string>> known WEFT_GUARDED_BY(mutex);
  // Of endpoints that are used no more.
  std::map<std::string, Handles> left WEFT_GUARDED_BY(mutex);

  bool somebody_knows(const std::string& name) const WEFT_REQUIRES(mutex) {
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& each) { return each.second.contains(name); });
  }
  /// Those that can be closed now; to be let go without the lock.
  std::vector<Handles> take_unknown() WEFT_REQUIRES(mutex) {
    std::vector<Handles> unknown;
    std::erase_if(left, [&](auto& each) WEFT_REQUIRES(mutex) {
      if (somebody_knows(each.first)) return false;
      unknown.push_back(std::move(each.second));
      return true;
    });
    return unknown;
  }
};

// Never destroyed: engines may be closed while statics go away.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

SharedEndpoint::SharedEndpoint(std::string name) : name_(std::move(name)) {
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  all.known[name_];
}

SharedEndpoint::~SharedEndpoint() {
  std::vector<Handles> closing;
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  all.known.erase(name_);
  closing = all.take_unknown();
}

void SharedEndpoint::knows(const std::string& other) {
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  all.known[name_].insert(other);
}

void SharedEndpoint::forgets(const std::string& other) {
  std::vector<Handles> closing;
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  all.known[name_].erase(other);
  closing = all.take_unknown();
}

void SharedEndpoint::leave_behind(std::shared_ptr<void> handles) {
  Registry& all = registry();
  const core::Lock lock(all.mutex);
  all.left[name_] = std::move(handles);
}

}  // namespace weft::providers
