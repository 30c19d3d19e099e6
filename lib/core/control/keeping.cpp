// Links that are made anew when they end. Control thread only.
#include <algorithm>

#include "base/random.hpp"
#include "control/address.hpp"
#include "control/plane.hpp"

namespace weft::core {
namespace {

/// Up to a quarter longer.
Nanoseconds scattered(Nanoseconds pause) {
  return pause + Nanoseconds(random_u64() % (pause.count() / 4 + 1));
}

}  // namespace

/// The peer was met, and is to be met again when it is gone.
void ControlPlane::keep(const std::string& name, const std::string& address) {
  if (shut_down_) return;
  Kept& kept = kept_[name];
  if (!kept.timer) kept.timer = std::make_unique<asio::steady_timer>(io_);
  kept.address = address;
  kept.pause = tuning_.first_pause;
}

/// A link to the peer has ended, or could not be made.
void ControlPlane::miss(const std::string& name) {
  const auto found = kept_.find(name);
  if (found == kept_.end() || shut_down_) return;
  Kept& kept = found->second;
  kept.timer->expires_after(scattered(kept.pause));
  kept.pause = std::min(2 * kept.pause, tuning_.longest_pause);
  kept.timer->async_wait([this, name](const std::error_code& cancelled) {
    if (!cancelled) redial(name);
  });
}

void ControlPlane::redial(const std::string& name) {
  const auto found = kept_.find(name);
  if (found == kept_.end() || shut_down_) return;
  // It may have come back by itself.
  if (const auto place = places_.find(name); place != places_.end() && place->second.link) return;
  const std::string address = found->second.address;
  const auto where = parse_address(address);
  if (!where) return;
  const auto then = [this, name, address](const Result<LinkId>& result) {
    if (!result) return miss(name);
    // Unless it was let go meanwhile. Another engine that answers there now is kept in its stead.
    const auto met = connections_.find(*result);
    if (met != connections_.end() && kept_.erase(name) > 0) keep(met->second->peer.name, address);
  };
  begin(std::make_shared<Attempt>(address, Deadline::in(tuning_.redial_time), false, then), *where);
}

}  // namespace weft::core
