#include "load/driver.hpp"

#include <algorithm>

namespace weft::perf {

bool is_manual(const Engine& engine) {
  const auto settings = engine.info().settings;
  return std::any_of(settings.begin(), settings.end(), [](const Setting& setting) {
    return setting.name == "progress" && setting.value == "manual";
  });
}

void Looks::once() {
  if (engine_.progress().value_or(0) == 0 && ++in_vain_ % looks_a_yield == 0)
    std::this_thread::yield();
}

Driver::Driver(Engine& engine) {
  if (!is_manual(engine)) return;
  thread_ = std::jthread([&engine](const std::stop_token& stop) {
    Looks looks(engine);
    while (!stop.stop_requested()) looks.once();
  });
}

}  // namespace weft::perf
