#include "lease/key_replacements.hpp"

#include <algorithm>
#include <utility>

namespace weft::core {

std::uint64_t KeyReplacements::begin(std::vector<Old> old, std::set<LinkId> holders) {
  const Lock lock(mutex_);
  const std::uint64_t request = next_++;
  under_way_[request] = {std::move(old), std::move(holders)};
  return request;
}

std::uint64_t KeyReplacements::of(const ExtentKey& key) const {
  const Lock lock(mutex_);
  for (const auto& [request, replacement] : under_way_)
    for (const Old& old : replacement.old)
      if (old.key.get() == &key) return request;
  return 0;
}

bool KeyReplacements::wait(std::uint64_t request, Deadline deadline) const {
  const Lock lock(mutex_);
  return changed_.wait(mutex_, deadline, [&]() WEFT_REQUIRES(mutex_) {
    const auto entry = under_way_.find(request);
    return entry == under_way_.end() || entry->second.unanswered.empty();
  });
}

bool KeyReplacements::close(std::uint64_t request) {
  const Lock closing(closing_);
  std::vector<Old> old;
  {
    const Lock lock(mutex_);
    const auto entry = under_way_.find(request);
    if (entry == under_way_.end()) return true;
    old = std::move(entry->second.old);
  }
  std::erase_if(old, [](Old& each) {
    if (!each.replaced.registration->close()) return false;
    each.replaced.registration.reset();
    each.key->replaced(each.replaced.number);
    return true;
  });
  const bool all = old.empty();
  const Lock lock(mutex_);
  if (all)
    under_way_.erase(request);
  else
    under_way_[request].old = std::move(old);
  changed_.notify_all();
  return all;
}

void KeyReplacements::close_answered() {
  std::vector<std::uint64_t> answered;
  {
    const Lock lock(mutex_);
    for (const auto& [request, replacement] : under_way_)
      if (replacement.unanswered.empty()) answered.push_back(request);
  }
  for (const std::uint64_t request : answered) close(request);
}

void KeyReplacements::clear() {
  const Lock closing(closing_);
  const Lock lock(mutex_);
  under_way_.clear();
}

void KeyReplacements::take(LinkId from, const KeysDrained& drained) {
  const Lock lock(mutex_);
  const auto entry = under_way_.find(drained.request);
  if (entry == under_way_.end()) return;
  entry->second.unanswered.erase(from);
  changed_.notify_all();
}

void KeyReplacements::link_down(LinkId link) {
  const Lock lock(mutex_);
  for (auto& [request, replacement] : under_way_) replacement.unanswered.erase(link);
  changed_.notify_all();
}

}  // namespace weft::core
