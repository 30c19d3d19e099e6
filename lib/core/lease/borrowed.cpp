#include "lease/borrowed.hpp"

#include <utility>

#include "base/sync.hpp"
#include "base/thread.hpp"

namespace weft::core {

void Borrowed::offer(Lent lent, bool own) {
  const Lock lock(mutex_);
  if (stopped_) return;
  lent_ = std::move(lent);
  own_ = own;
}

void Borrowed::refuse(std::string why) {
  const Lock lock(mutex_);
  if (!stopped_) why_not_ = Error(Code::unsupported, std::move(why));
}

Result<std::byte*> Borrowed::map(const Device& device, std::uint64_t bytes) {
  const Lock driver(driver_mutex_);
  Lock lock(mutex_);
  if (!lent_) return fail(why_not_);
  // A handle can't be opened in the process that it is of, whose GPUs share one address space.
  if (own_) return reinterpret_cast<std::byte*>(lent_->address);
  mapped_ = true;
  const Lent lent = *lent_;
  lock.unlock();
  auto mapping = mappings_.find(&device);
  if (mapping == mappings_.end())
    mapping = mappings_.emplace(&device, device.map(lent, bytes)).first;
  if (!mapping->second) return fail(mapping->second.error());
  return (*mapping->second)->address();
}

bool Borrowed::stop() {
  const Lock lock(mutex_);
  stopped_ = true;
  lent_.reset();
  why_not_ = Error(Code::stale, "the grant is used no more");
  return mapped_;
}

void Borrowed::close() {
  if (!stop()) return;
  const Lock driver(driver_mutex_);
  mappings_.clear();
  const Lock lock(mutex_);
  mapped_ = false;
}

void Borrowed::close_aside(const std::shared_ptr<Borrowed>& borrowed) {
  if (borrowed->stop()) run_detached([borrowed] { borrowed->close(); });
}

}  // namespace weft::core
