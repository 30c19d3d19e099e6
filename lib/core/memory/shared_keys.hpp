// The keys of a segment that grants share: one for each extent, rail and set of rights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/sync.hpp"
#include "memory/extent_key.hpp"
#include "memory/extents.hpp"

namespace weft::core {

/// From any thread.
class SharedKeys {
 public:
  using KeyPtr = std::shared_ptr<ExtentKey>;
  /// Until a NIC refuses such large ones, the extents are of this size.
  SharedKeys(std::uint64_t segment_bytes, std::uint64_t extent_bytes) noexcept
      : segment_bytes_(segment_bytes), largest_(extent_bytes) {}

  /// For that purpose.
  Extents extents(providers::Access access) const {
    const Lock lock(mutex_);
    return Extents(segment_bytes_, size_of(access));
  }
  /// Extents of that size were refused. False: smaller ones are not worth a try, or grants have
  /// some of that size.
  bool shrink(providers::Access access) {
    const Lock lock(mutex_);
    const std::uint64_t smaller = smaller_extent(segment_bytes_, size_of(access));
    const auto is_used = [&](const auto& each) {
      return std::get<0>(each.first) == access && each.second.use_count() > 1;
    };
    if (smaller == 0 || std::any_of(keys_.begin(), keys_.end(), is_used)) return false;
    std::erase_if(keys_, [&](const auto& each) { return std::get<0>(each.first) == access; });
    sizes_[access] = smaller;
    refused_.clear();
    return true;
  }

  /// Null if there is none.
  KeyPtr find(providers::Access access, std::uint32_t rail, std::size_t extent) const {
    const Lock lock(mutex_);
    const auto entry = keys_.find({access, rail, extent});
    return entry != keys_.end() ? entry->second : nullptr;
  }
  void add(providers::Access access, std::size_t extent, const KeyPtr& key) {
    const Lock lock(mutex_);
    keys_[{access, key->rail(), extent}] = key;
  }
  /// No grant gets it any more.
  void forget(const ExtentKey& key) {
    const Lock lock(mutex_);
    std::erase_if(keys_, [&](const auto& each) { return each.second.get() == &key; });
    refused_.clear();  // there may be room now
  }
  /// The rail's NIC had no room for it.
  void refuse(providers::Access access, std::uint32_t rail, std::size_t extent) {
    const Lock lock(mutex_);
    refused_.insert({access, rail, extent});
  }
  bool refused(providers::Access access, std::uint32_t rail, std::size_t extent) const {
    const Lock lock(mutex_);
    return refused_.contains({access, rail, extent});
  }
  /// Closes all, which may block: the segment or the rails are going.
  void close() {
    const Lock lock(mutex_);
    for (const auto& [name, key] : keys_) key->drop();
    keys_.clear();
  }

 private:
  using Name = std::tuple<providers::Access, std::uint32_t, std::size_t>;
  std::uint64_t size_of(providers::Access access) const WEFT_REQUIRES(mutex_) {
    const auto entry = sizes_.find(access);
    return entry != sizes_.end() ? entry->second : largest_;
  }

  const std::uint64_t segment_bytes_, largest_;
  mutable Mutex mutex_;
  std::map<providers::Access, std::uint64_t> sizes_ WEFT_GUARDED_BY(mutex_);
  std::map<Name, KeyPtr> keys_ WEFT_GUARDED_BY(mutex_);
  std::set<Name> refused_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
