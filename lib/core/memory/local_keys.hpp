// How rails serve a segment's memory at its own side.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.hpp"
#include "memory/extents.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

/// The rails that serve a segment, with its registrations for local use, one for each extent. These
/// are closed by the segment when it goes, or before that by the engine, whose rails they must not
/// outlive. Readers take no lock.
class LocalKeys {
 public:
  explicit LocalKeys(const Extents& extents) noexcept : extents_(extents) {}

  // Before other threads see the segment.
  /// Their size, while no rail serves it.
  void set_extents(const Extents& extents) {
    by_rail_.clear();
    extents_ = extents;
  }
  /// The rail's NIC reaches the memory, those extents that it registers, or all if it needs no
  /// registration.
  void serve(std::size_t rail, bool registers) {
    Served& served = at(rail);
    if (registers) served.extents = std::vector<Slot>(extents_.count());
    served.by = Served::By::nic;
  }
  /// It does not, for that reason: what it carries goes through the bounce-buffer transport.
  void add_staging(std::size_t rail, std::string why) {
    Served& served = at(rail);
    served.why_staged = std::move(why);
    served.by = Served::By::bounce;
  }

  const Extents& extents() const noexcept { return extents_; }
  bool served_by(std::size_t rail) const noexcept {
    return rail < by_rail_.size() && by_rail_[rail].by != Served::By::nobody;
  }
  bool reached_by(std::size_t rail) const noexcept {
    return rail < by_rail_.size() && by_rail_[rail].by == Served::By::nic;
  }
  /// The rail reaches the memory, and registers it.
  bool registers(std::size_t rail) const noexcept {
    return reached_by(rail) && !by_rail_[rail].extents.empty();
  }
  /// The rail reaches that extent as things are.
  bool reaches(std::size_t rail, std::size_t extent) const noexcept {
    if (!reached_by(rail)) return false;
    const Served& served = by_rail_[rail];
    return served.extents.empty() || served.extents[extent].current.load() != nullptr;
  }
  /// Of a rail that serves it and does not reach it.
  const std::string& why_staged(std::size_t rail) const { return by_rail_[rail].why_staged; }
  /// Of an extent that the rail reaches; null where it needs none.
  const providers::Registration* registration(std::size_t rail, std::size_t extent) const {
    const Served& served = by_rail_[rail];
    return served.extents.empty() ? nullptr
                                  : served.extents[extent].current.load(std::memory_order_acquire);
  }

  /// An extent is looked at by one thread at a time: `make` registers it, unless it is registered
  /// already. An error is what `make` returns: the extent counts as refused.
  template <typename Make>
  Result<void> add(std::size_t rail, std::size_t extent, Make&& make) {
    const Lock registering(registering_);
    Slot& slot = by_rail_[rail].extents[extent];
    if (slot.current.load() != nullptr) return {};
    Result<std::unique_ptr<providers::Registration>> made = make();
    const Lock lock(mutex_);
    if (!made) {
      slot.refused = true;
      return fail(std::move(made.error()));
    }
    if (closed_) return fail(Code::closed, "the segment is being released");
    slot.owned = std::move(*made);
    slot.current = slot.owned.get();
    return {};
  }
  /// The rail had no room for it.
  bool refused(std::size_t rail, std::size_t extent) const {
    return by_rail_[rail].extents[extent].refused;
  }

  /// The rail was opened again: whether it has lost the memory, which is staged from here on.
  bool rail_opened(std::size_t rail) {
    const Lock lock(mutex_);
    if (!registers(rail)) return false;
    Served& served = by_rail_[rail];
    for (const Slot& slot : served.extents) {
      const Error* lost = slot.owned ? slot.owned->lost() : nullptr;
      if (lost == nullptr) continue;
      served.why_staged = lost->message();
      served.by = Served::By::bounce;
      ++losses_;
      return true;
    }
    return false;
  }
  /// How many rails have lost it.
  std::uint32_t losses() const noexcept { return losses_; }

  /// May block. They are closed when it returns, also if another thread closed them.
  void close() {
    const Lock lock(mutex_);
    for (Served& each : by_rail_)
      for (Slot& slot : each.extents) slot.owned.reset();
    closed_ = true;
  }
  bool closed() const noexcept { return closed_; }

 private:
  struct Slot {
    std::atomic<const providers::Registration*> current{nullptr};  // never null again
    std::atomic<bool> refused{false};
    std::unique_ptr<providers::Registration> owned = {};
  };
  struct Served {
    enum class By : std::uint8_t { nobody, nic, bounce };
    std::atomic<By> by{By::nobody};  // written last: it never becomes better than it was
    std::string why_staged = {};
    std::vector<Slot> extents = {};  // none where the rail needs no registration
  };
  Served& at(std::size_t rail) {
    while (by_rail_.size() <= rail) by_rail_.emplace_back();
    return by_rail_[rail];
  }

  Extents extents_;
  Mutex registering_;  // of the threads that register, which may take long
  Mutex mutex_;        // of those that change a Served; readers look at its atomics first
  std::deque<Served> by_rail_;
  std::atomic<std::uint32_t> losses_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace weft::core
