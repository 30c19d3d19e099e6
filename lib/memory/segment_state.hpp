// Registered memory, behind the Segment handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <weft/memory.hpp>

#include "base/allocation.hpp"
#include "base/sync.hpp"
#include "base/use_count.hpp"
#include "device/device.hpp"
#include "memory/nic_access.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

class EngineState;

/// The size of extents where all of the memory is one.
inline constexpr std::uint64_t no_seams = std::uint64_t{1} << 63;

/// How rails serve a segment's memory, with its registrations. These are closed by the segment when
/// it goes, or before that by the engine, whose rails they must not outlive.
class LocalKeys {
 public:
  // Before other threads see the segment.
  /// The rail's NIC reaches the memory; null where it needs no registration.
  void add(std::size_t rail, std::unique_ptr<providers::Registration> registration) {
    Served& served = at(rail);
    served.registration = std::move(registration);
    served.by = Served::By::nic;
  }
  /// It does not, for that reason: what it carries goes through the bounce-buffer transport.
  void add_staging(std::size_t rail, std::string why) {
    Served& served = at(rail);
    served.why_staged = std::move(why);
    served.by = Served::By::bounce;
  }

  bool served_by(std::size_t rail) const noexcept {
    return rail < by_rail_.size() && by_rail_[rail].by != Served::By::nobody;
  }
  bool reached_by(std::size_t rail) const noexcept {
    return rail < by_rail_.size() && by_rail_[rail].by == Served::By::nic;
  }
  /// Of a rail that serves it and does not reach it.
  const std::string& why_staged(std::size_t rail) const { return by_rail_[rail].why_staged; }
  /// Of the extent that this offset lies in; null where it needs none.
  const providers::Registration* registration(std::size_t rail, std::uint64_t) const {
    return by_rail_[rail].registration.get();
  }
  /// The rail was opened again: whether it has lost the memory, which is staged from here on.
  bool rail_opened(std::size_t rail) {
    const Lock lock(mutex_);
    if (!reached_by(rail) || by_rail_[rail].registration == nullptr) return false;
    Served& served = by_rail_[rail];
    const Error* lost = served.registration->lost();
    if (lost == nullptr) return false;
    served.why_staged = lost->message();
    served.by = Served::By::bounce;
    ++losses_;
    return true;
  }
  /// How many rails have lost it.
  std::uint32_t losses() const noexcept { return losses_; }

  /// May block. They are closed when it returns, also if another thread closed them.
  void close() {
    const Lock lock(mutex_);
    for (Served& each : by_rail_) each.registration.reset();
    closed_ = true;
  }
  bool closed() const noexcept { return closed_; }

 private:
  struct Served {
    enum class By : std::uint8_t { nobody, nic, bounce };
    std::atomic<By> by{By::nobody};  // written last: it never becomes better than it was
    std::string why_staged = {};
    std::unique_ptr<providers::Registration> registration = {};
  };
  Served& at(std::size_t rail) {
    while (by_rail_.size() <= rail) by_rail_.emplace_back();
    return by_rail_[rail];
  }

  Mutex mutex_;  // of those that change a Served; readers look at its atomic `by` first
  std::deque<Served> by_rail_;
  std::atomic<std::uint32_t> losses_{0};
  std::atomic<bool> closed_{false};
};

/// Memory with its registrations, one for each rail that serves it and needs local buffers
/// registered. Transfers count as users; the memory goes when the last owner has left.
class SegmentState {
 public:
  SegmentState(std::uint64_t id, const std::shared_ptr<EngineState>& engine, Allocation allocation,
               Place place, const Device& device)
      : id_(id),
        engine_(engine),
        owner_(engine.get()),
        allocation_(std::move(allocation)),
        place_(place),
        device_(device),
        nics_(device, allocation_.address(), allocation_.size(),
              {allocation_.fd(), allocation_.file_offset()}) {}
  ~SegmentState() { keys_->close(); }

  std::uint64_t id() const noexcept { return id_; }
  std::byte* address() const noexcept { return allocation_.address(); }
  std::uint64_t size() const noexcept { return allocation_.size(); }
  int fd() const noexcept { return allocation_.fd(); }
  bool may_fault() const noexcept { return may_fault_; }
  bool read_only() const noexcept { return allocation_.read_only(); }
  const Place& place() const noexcept { return place_; }
  const Device& device() const noexcept { return device_; }
  /// The data that processes of this host need to map it, or why they can't. Before other threads
  /// see it.
  void set_lent(Result<Lent> lent) { lent_ = std::move(lent); }
  const Result<Lent>& lent() const noexcept { return lent_; }
  std::shared_ptr<EngineState> engine() const { return engine_.lock(); }
  bool belongs_to(const EngineState& engine) const noexcept { return &engine == owner_; }
  UseCount& users() noexcept { return users_; }

  /// The memory as NICs see it.
  NicAccess& nics() noexcept { return nics_; }
  const NicAccess& nics() const noexcept { return nics_; }

  /// Lets one of the engine's rails serve the memory; null where it needs no registration. Before
  /// other threads see the segment.
  void add_rail(std::size_t rail, std::unique_ptr<providers::Registration> registration) {
    keys_->add(rail, std::move(registration));
  }
  /// The same, but its NIC does not reach the memory, for that reason: what it carries goes through
  /// the bounce-buffer transport.
  void add_staging_rail(std::size_t rail, std::string why) {
    keys_->add_staging(rail, std::move(why));
  }
  bool served_by(std::size_t rail) const noexcept { return keys_->served_by(rail); }
  /// That rail serves it, and its NIC reads and writes the memory itself. Not for ever: a rail that
  /// is opened again may lose it.
  bool reached_by(std::size_t rail) const noexcept { return keys_->reached_by(rail); }
  /// Why a rail that serves it does not reach it.
  const std::string& why_staged(std::size_t rail) const { return keys_->why_staged(rail); }
  /// How many rails have lost it.
  std::uint32_t losses() const noexcept { return keys_->losses(); }
  /// Its extents have this size, a power of two, the last one excepted. No registration goes over
  /// the seam between two.
  std::uint64_t extent_bytes() const noexcept { return no_seams; }
  /// The rail's NIC reads and writes the extent that this offset lies in. Not for ever.
  bool reaches(std::size_t rail, std::uint64_t /*offset*/) const noexcept {
    return keys_->reached_by(rail);
  }
  /// With that rail, of the extent that this offset lies in; null where it needs none. Not after
  /// unregister().
  const providers::Registration* registration(std::size_t rail, std::uint64_t offset) const {
    return keys_->registration(rail, offset);
  }
  /// It is used no more: users() is closed and idle, or the rails are going.
  void unregister() {
    keys_->close();
    nics_.let_go();
  }
  const std::shared_ptr<LocalKeys>& keys() const noexcept { return keys_; }

 private:
  const std::uint64_t id_;
  const std::weak_ptr<EngineState> engine_;
  const EngineState* const owner_;  // to compare only
  Allocation allocation_;
  const bool may_fault_ = allocation_.may_fault();
  const Place place_;
  const Device& device_;
  NicAccess nics_;
  UseCount users_;
  Result<Lent> lent_ = fail(Code::unsupported, "");
  const std::shared_ptr<LocalKeys> keys_ = std::make_shared<LocalKeys>();
};

}  // namespace weft::core
