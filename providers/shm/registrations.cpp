#include "providers/shm/registrations.hpp"

#include <fmt/format.h>

#include <thread>
#include <weft/deadline.hpp>

#include "base/log.hpp"
#include "base/random.hpp"
#include "base/sync.hpp"

namespace weft::providers::shm {
namespace {

// A copy takes well under a millisecond; a process that was stopped within one may take for ever.
constexpr auto longest_copy = std::chrono::milliseconds(500);
constexpr auto between_looks = std::chrono::microseconds(50);

class ShmRegistration final : public Registration {
 public:
  ShmRegistration(Registrations& registrations, std::uint64_t key)
      : registrations_(registrations), key_(key), open_key_(key) {}
  /// Does not wait a second time for copies that did not end.
  ~ShmRegistration() override {
    if (!abandoned_) ShmRegistration::close();
  }
  bool close() override {
    if (open_key_ != 0 && registrations_.close(open_key_)) open_key_ = 0;
    abandoned_ = open_key_ != 0;
    return !abandoned_;
  }
  void* descriptor() const noexcept override { return nullptr; }
  std::uint64_t key() const noexcept override { return key_; }

 private:
  Registrations& registrations_;
  const std::uint64_t key_;  // 0: for local use, which needs no entry
  std::uint64_t open_key_;   // 0 once it is closed and no copy uses it
  bool abandoned_ = false;
};

}  // namespace

Result<std::unique_ptr<Registration>> Registrations::add(const Extent& memory, Access access) {
  if (access == Access::local || access == Access::source)
    return std::make_unique<ShmRegistration>(*this, 0);
  return take_index().map([&](std::size_t index) -> std::unique_ptr<Registration> {
    const core::Lock lock(mutex_);
    Entry& entry = head_.entries[index];
    entry.address = reinterpret_cast<std::uintptr_t>(memory.address);
    entry.length = memory.length;
    entry.access = static_cast<std::uint64_t>(access);
    entry.backing = backing_of(memory.file);
    std::uint64_t key = 0;
    while (key < entry_count) key = core::random_u64() / entry_count * entry_count + index;
    entry.key.store(key, std::memory_order_seq_cst);
    return std::make_unique<ShmRegistration>(*this, key);
  });
}

Result<int> Registrations::file_of(std::uint64_t key) const {
  const core::Lock lock(mutex_);
  const Entry& entry = head_.entries[key % entry_count];
  if (key < entry_count || entry.key.load(std::memory_order_seq_cst) != key)
    return fail(Code::stale, "the key is not, or no longer, valid");
  if (entry.backing.why_not != Unmappable::no)
    return fail(Code::unsupported, to_text(entry.backing.why_not));
  return entry.backing.descriptor;
}

Result<std::size_t> Registrations::take_index() {
  const core::Lock lock(mutex_);
  if (free_.empty()) {
    if (fresh_ == entry_count)
      return fail(Code::out_of_memory,
                  fmt::format("an shm rail takes {} registrations", entry_count));
    return fresh_++;
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  return index;
}

bool Registrations::close(std::uint64_t key) {
  const std::size_t index = key % entry_count;
  head_.entries[index].key.store(0, std::memory_order_seq_cst);
  if (!wait_for_copies(key)) {
    core::log(LogLevel::warning,
              "a peer was within a copy when its grant was closed, and has not come out of it; "
              "the memory may still change");
    return false;  // the entry stays out of use
  }
  if (head_.entries[index].backing.why_not == Unmappable::no) tell_those_who_map();
  const core::Lock lock(mutex_);
  free_.push_back(index);
  return true;
}

void Registrations::tell_those_who_map() {
  head_.closings.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t claimed = head_.claimed.load();
  for (std::uint32_t slot = 0; slot < std::min<std::uint32_t>(claimed, slot_count); ++slot)
    if (head_.claims[slot].maps.load(std::memory_order_seq_cst) != 0) tell_(head_.claims[slot]);
}

bool Registrations::wait_for_copies(std::uint64_t key) const {
  const auto deadline = Deadline::in(longest_copy);
  const std::uint32_t claimed = head_.claimed.load();
  for (std::uint32_t slot = 0; slot < std::min<std::uint32_t>(claimed, slot_count); ++slot) {
    const Claim& claim = head_.claims[slot];
    for (const Copying& copying : claim.copying)
      while (copying.key.load(std::memory_order_seq_cst) == key && !gone_(claim)) {
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(between_looks);
      }
  }
  return true;
}

}  // namespace weft::providers::shm
