#include "tables.hpp"

#include <algorithm>

namespace weft::efa_sim {

std::uint32_t RegionTable::add(const Region& region, bool reusing) {
  std::uint32_t key = reusing ? 0x100 : next_;
  while (regions_.contains(key)) key = (key + 1) & 0xffffff;
  // Keys are handed out in strides, so that a guessed one is seldom good.
  if (!reusing) next_ = (key * 5 + 3) & 0xffffff;
  regions_[key] = region;
  return key;
}

bool RegionTable::remove(std::uint32_t key, const Domain& domain) {
  const auto found = regions_.find(key);
  if (found == regions_.end() || found->second.domain.number != domain.number) return false;
  regions_.erase(found);
  return true;
}

void RegionTable::remove_all_of(const Domain& domain) {
  std::erase_if(regions_,
                [&](const auto& each) { return each.second.domain.number == domain.number; });
}

bool RegionTable::allows(const Domain& domain, std::uint32_t key, std::uint64_t address,
                         std::uint64_t length, std::uint32_t rights) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return false;
  const Region& region = found->second;
  return region.domain.number == domain.number && (region.rights & rights) == rights &&
         address >= region.address && length <= region.length &&
         address - region.address <= region.length - length;
}

std::uint16_t AddressTable::add(const Domain& domain, const Gid& gid) {
  if (const auto known = handle_of(domain, gid)) {
    ++entries_[*known].uses;
    return *known;
  }
  auto entry = std::ranges::find(entries_, 0u, &Entry::uses);
  if (entry == entries_.end()) entry = entries_.insert(entries_.end(), Entry{});
  *entry = {domain.number, gid, 1};
  return static_cast<std::uint16_t>(entry - entries_.begin());
}

bool AddressTable::remove(std::uint16_t handle, const Domain& domain) {
  if (!find(domain, handle)) return false;
  --entries_[handle].uses;
  return true;
}

void AddressTable::remove_all_of(const Domain& domain) {
  for (Entry& entry : entries_) {
    if (entry.domain == domain.number) entry.uses = 0;
  }
}

std::optional<Gid> AddressTable::find(const Domain& domain, std::uint16_t handle) const {
  if (handle >= entries_.size()) return std::nullopt;
  const Entry& entry = entries_[handle];
  if (entry.uses == 0 || entry.domain != domain.number) return std::nullopt;
  return entry.gid;
}

std::optional<std::uint16_t> AddressTable::handle_of(const Domain& domain, const Gid& gid) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.uses > 0 && entry.domain == domain.number && entry.gid == gid)
      return static_cast<std::uint16_t>(i);
  }
  return std::nullopt;
}

}  // namespace weft::efa_sim
