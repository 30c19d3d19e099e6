// Registered memory, behind the Segment handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <weft/place.hpp>

#include "base/use_count.hpp"
#include "device/allocation.hpp"
#include "device/device.hpp"
#include "memory/local_keys.hpp"
#include "memory/nic_access.hpp"
#include "memory/shared_keys.hpp"

namespace weft::core {

class EngineState;

/// Memory with its registrations: for local use, and for peers where grants share them. Transfers
/// count as users; the memory goes when the last owner has left.
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
  ~SegmentState() { unregister(); }

  std::uint64_t id() const noexcept { return id_; }
  std::byte* address() const noexcept { return allocation_.address(); }
  std::uint64_t size() const noexcept { return allocation_.size(); }
  int fd() const noexcept { return allocation_.fd(); }
  bool may_fault() const noexcept { return may_fault_; }
  bool read_only() const noexcept { return allocation_.read_only(); }
  const Place& place() const noexcept { return place_; }
  /// Pieces are whole blocks of so many bytes, a power of two; 1: they may be any.
  std::uint64_t block_bytes() const noexcept { return block_bytes_; }
  /// Before other threads see it.
  void set_block_bytes(std::uint64_t bytes) noexcept { block_bytes_ = bytes; }
  const Device& device() const noexcept { return device_; }
  /// The data that processes of this host need to map it, or why they can't. Before other threads
  /// see it.
  void set_lent(Result<Lent> lent) { lent_ = std::move(lent); }
  const Result<Lent>& lent() const noexcept { return lent_; }
  std::shared_ptr<EngineState> engine() const { return engine_.lock(); }
  bool belongs_to(const EngineState& engine) const noexcept { return &engine == owner_; }
  UseCount& users() noexcept { return users_; }
  /// Those of them that are copies between files and memory: no rail carries them, so they go on
  /// when the engine is gone.
  UseCount& copies() noexcept { return copies_; }

  /// The memory as NICs see it.
  NicAccess& nics() noexcept { return nics_; }
  const NicAccess& nics() const noexcept { return nics_; }

  /// One of the engine's rails serves it.
  bool served_by(std::size_t rail) const noexcept { return keys_->served_by(rail); }
  /// That rail serves it, and its NIC reads and writes the memory itself. Not for ever: a rail that
  /// is opened again may lose it.
  bool reached_by(std::size_t rail) const noexcept { return keys_->reached_by(rail); }
  /// Why a rail that serves it does not reach it.
  const std::string& why_staged(std::size_t rail) const { return keys_->why_staged(rail); }
  /// How many rails have lost it.
  std::uint32_t losses() const noexcept { return keys_->losses(); }
  /// Its extents for local use have this size, a power of two, the last one excepted. No
  /// registration goes over the seam between two.
  std::uint64_t extent_bytes() const noexcept { return keys_->extents().bytes(); }
  /// The rail's NIC reads and writes the extent that this offset lies in. Not for ever.
  bool reaches(std::size_t rail, std::uint64_t offset) const noexcept {
    return keys_->reaches(rail, keys_->extents().of(offset));
  }
  /// With that rail, of the extent that this offset lies in; null where it needs none. Not after
  /// unregister().
  const providers::Registration* registration(std::size_t rail, std::uint64_t offset) const {
    return keys_->registration(rail, keys_->extents().of(offset));
  }
  /// It is used no more: users() is closed and idle, or the rails are going.
  void unregister() {
    shared_keys_->close();
    keys_->close();
    nics_.let_go();
  }
  const std::shared_ptr<LocalKeys>& keys() const noexcept { return keys_; }
  /// What grants share. Closed like the local ones.
  const std::shared_ptr<SharedKeys>& shared_keys() const noexcept { return shared_keys_; }
  /// The largest extents that its NICs take, as far as they say. Before other threads see it.
  void set_extents(std::uint64_t bytes) {
    keys_->set_extents(Extents(size(), bytes));
    shared_keys_ = std::make_shared<SharedKeys>(size(), bytes);
  }

 private:
  const std::uint64_t id_;
  const std::weak_ptr<EngineState> engine_;
  const EngineState* const owner_;  // to compare only
  Allocation allocation_;
  const bool may_fault_ = allocation_.may_fault();
  const Place place_;
  std::uint64_t block_bytes_ = 1;
  const Device& device_;
  NicAccess nics_;
  UseCount users_, copies_;
  Result<Lent> lent_ = fail(Code::unsupported, "");
  const std::shared_ptr<LocalKeys> keys_ = std::make_shared<LocalKeys>(Extents(size()));
  std::shared_ptr<SharedKeys> shared_keys_ = std::make_shared<SharedKeys>(size(), no_seams);
};

}  // namespace weft::core
