#include "providers/shared_endpoints.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::providers {
namespace {

using Handles = std::shared_ptr<void>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> known;  // by each open endpoint
  std::map<std::string, Handles> left;                 // of endpoints that are used no more

  bool somebody_knows(const std::string& name) const {
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& each) { return each.second.contains(name); });
  }
  /// Those that can be closed now; to be let go without the lock.
  std::vector<Handles> take_unknown() {
    std::vector<Handles> unknown;
    std::erase_if(left, [&](auto& each) {
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
  const std::lock_guard lock(registry().mutex);
  registry().known[name_];
}

SharedEndpoint::~SharedEndpoint() {
  std::vector<Handles> closing;
  const std::lock_guard lock(registry().mutex);
  registry().known.erase(name_);
  closing = registry().take_unknown();
}

void SharedEndpoint::knows(const std::string& other) {
  const std::lock_guard lock(registry().mutex);
  registry().known[name_].insert(other);
}

void SharedEndpoint::forgets(const std::string& other) {
  std::vector<Handles> closing;
  const std::lock_guard lock(registry().mutex);
  registry().known[name_].erase(other);
  closing = registry().take_unknown();
}

void SharedEndpoint::leave_behind(std::shared_ptr<void> handles) {
  const std::lock_guard lock(registry().mutex);
  registry().left[name_] = std::move(handles);
}

}  // namespace weft::providers
