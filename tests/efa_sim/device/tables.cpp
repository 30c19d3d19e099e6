#include "tables.hpp"

#include <algorithm>

namespace weft::efa_sim {
namespace {

constexpr std::uint64_t page_bytes = 4096;

}  // namespace

std::uint64_t RegionTable::Region::pages() const {
  if (length == 0) return 0;
  return (address + length - 1) / page_bytes - address / page_bytes + 1;
}

std::uint32_t RegionTable::add(const Region& region, bool reusing) {
  std::uint32_t key = reusing ? 0x100 : next_;
  while (regions_.contains(key)) key = (key + 1) & 0xffffff;
  // Keys are handed out in strides, so that a guessed one is seldom good.
  if (!reusing) next_ = (key * 5 + 3) & 0xffffff;
  regions_[key] = region;
  pages_ += region.pages();
  ++made_[region.domain.process];
  return key;
}

bool RegionTable::remove(std::uint32_t key, const Domain& domain) {
  const auto found = regions_.find(key);
  if (found == regions_.end() || found->second.domain.number != domain.number) return false;
  pages_ -= found->second.pages();
  regions_.erase(found);
  return true;
}

void RegionTable::remove_all_of(const Domain& domain) {
  std::erase_if(regions_, [&](const auto& each) {
    const Region& region = each.second;
    if (region.domain.number != domain.number) return false;
    pages_ -= region.pages();
    return true;
  });
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

Registrations RegionTable::of(pid_t process) const {
  Registrations sum{};
  for (const auto& [owner, made] : made_) {
    if (process == 0 || owner == process) sum.made += made;
  }
  for (const auto& [key, region] : regions_) {
    if (process != 0 && region.domain.process != process) continue;
    ++sum.regions;
    sum.pages += region.pages();
  }
  return sum;
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

std::size_t AddressTable::size() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& each) { return each.uses > 0; }));
}

}  // namespace weft::efa_sim
