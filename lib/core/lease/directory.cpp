#include "lease/directory.hpp"

#include <algorithm>
#include <utility>

#include "base/sync.hpp"

namespace weft::core {
namespace {

// Lookups that one peer may have waiting here.
constexpr std::size_t max_waiting_lookups = 1024;

}  // namespace

std::vector<Directory::Asker> Directory::publish(const std::string& name, Blob grant,
                                                 std::uint64_t lease) {
  const Lock lock(mutex_);
  published_[name] = {std::move(grant), lease};
  names_[lease].insert(name);
  const auto waiting = askers_.find(name);
  if (waiting == askers_.end()) return {};
  std::vector<Asker> askers = std::move(waiting->second);
  askers_.erase(waiting);
  return askers;
}

void Directory::withdraw(std::uint64_t lease) {
  const Lock lock(mutex_);
  const auto names = names_.extract(lease);
  if (!names) return;
  for (const std::string& name : names.mapped())
    if (const auto entry = published_.find(name);
        entry != published_.end() && entry->second.lease == lease)
      published_.erase(entry);
}

Result<std::optional<Blob>> Directory::ask(const std::string& name, Asker asker) {
  const Lock lock(mutex_);
  const auto entry = published_.find(name);
  if (entry != published_.end()) return std::optional(entry->second.grant);
  std::size_t waiting = 0;
  for (const auto& [other, askers] : askers_)
    waiting += static_cast<std::size_t>(std::count_if(
        askers.begin(), askers.end(), [&](const Asker& each) { return each.link == asker.link; }));
  if (waiting >= max_waiting_lookups)
    return fail(Code::queue_full, "too many lookups of this peer wait for their names");
  askers_[name].push_back(asker);
  return std::optional<Blob>();
}

void Directory::forget(Asker asker) {
  const Lock lock(mutex_);
  for (auto& [name, askers] : askers_)
    std::erase_if(askers, [&](const Asker& each) {
      return each.link == asker.link && each.request == asker.request;
    });
  std::erase_if(askers_, [](const auto& each) { return each.second.empty(); });
}

void Directory::add_lookup(std::uint64_t request, std::shared_ptr<LookupState> lookup) {
  const Lock lock(mutex_);
  lookups_[request] = std::move(lookup);
}

std::shared_ptr<LookupState> Directory::take_lookup(std::uint64_t request) {
  const Lock lock(mutex_);
  auto entry = lookups_.extract(request);
  return entry ? std::move(entry.mapped()) : nullptr;
}

void Directory::link_down(LinkId link, const Error& why) {
  std::vector<std::shared_ptr<LookupState>> lost;
  {
    const Lock lock(mutex_);
    for (auto& [name, askers] : askers_)
      std::erase_if(askers, [&](const Asker& each) { return each.link == link; });
    std::erase_if(askers_, [](const auto& each) { return each.second.empty(); });
    std::erase_if(lookups_, [&](const auto& each) {
      if (each.second->link != link) return false;
      lost.push_back(each.second);
      return true;
    });
  }
  for (const auto& lookup : lost) lookup->complete(why);
}

}  // namespace weft::core
