#include "nixl/cutter.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "base/thread.hpp"

namespace weft::nixl {
namespace {

constexpr auto longest_reopening = std::chrono::seconds(5);

}  // namespace

bool Cutter::State::take(const std::string& rail, Clock::time_point since) {
  const core::Lock lock(mutex);
  if (opened[rail] >= since) return false;
  return under_way.insert(rail).second;
}

void Cutter::State::reopen(const std::string& rail) {
  core::log(LogLevel::warning,
            "NIXL backend: {} is closed and opened again, for a peer that has stopped holds memory",
            rail);
  const auto reopened = engine->reopen(rail, Deadline::in(longest_reopening));
  if (!reopened) core::log(LogLevel::error, "NIXL backend: {}", reopened.error().to_string());
  const core::Lock lock(mutex);
  opened[rail] = Clock::now();
  under_way.erase(rail);
}

void Cutter::cut(const std::vector<std::string>& rails, Clock::time_point since) {
  for (const std::string& rail : rails)
    if (state_->take(rail, since))
      core::run_detached([state = state_, rail] { state->reopen(rail); });
}

}  // namespace weft::nixl
