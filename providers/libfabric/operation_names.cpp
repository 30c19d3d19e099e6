#include "providers/libfabric/operation_names.hpp"

#include <utility>

#include "base/sync.hpp"

namespace weft::providers {
namespace {

// A name is a slot's number from 1, and above it, how often the slot had been used before.
constexpr unsigned slot_bits = 32;
constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

static_assert(sizeof(void*) == sizeof(std::uint64_t));

}  // namespace

void* OperationNames::give(Posted& posted) {
  const core::Lock lock(mutex_);
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);  // so that take_back() allocates nothing
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Slot& slot = slots_[number - 1];
  slot.posted = &posted;
  return reinterpret_cast<void*>(std::uint64_t{slot.life} << slot_bits | number);
}

Posted* OperationNames::take_back(const void* name) {
  const auto value = reinterpret_cast<std::uint64_t>(name);
  const auto number = static_cast<std::uint32_t>(value & slot_mask);
  const core::Lock lock(mutex_);
  if (number == 0 || number > slots_.size()) return nullptr;
  Slot& slot = slots_[number - 1];
  if (slot.posted == nullptr || slot.life != value >> slot_bits) return nullptr;
  ++slot.life;
  free_.push_back(number);
  return std::exchange(slot.posted, nullptr);
}

}  // namespace weft::providers
