#include "driver/simulator.hpp"

#include <unistd.h>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

// Leaves no thread at work while the process's memory is taken down. One that is in a function of
// the program's is not waited for: it may wait for something that comes no more.
__attribute__((destructor)) void leave() {
  Simulator& s = simulator();
  if (s.process.load() != getpid()) return;
  Lock lock(s.mutex);
  s.leaving = true;
  s.changed();
  s.progress.wait(lock, [&] { return s.workers == 0; });
}

}  // namespace

Simulator& simulator() {
  static Simulator* const simulator = new Simulator;
  return *simulator;
}

Simulator::Simulator() : settings(Settings::from_environment()) {
  delay = {settings.delay_seed, settings.delay_microseconds};
  faults.plan(settings.failures);
}

void Simulator::initialise() {
  require(!settings.pci.empty(), no_device);
  if (!devices.empty()) return;
  memory.reserve();
  for (const std::string& pci : settings.pci)
    devices.push_back(
        {.ordinal = static_cast<Ordinal>(devices.size()), .pci = pci, .memory = settings.memory});
  process = getpid();
}

void take_away(const RegionPtr& region, Lock& lock) {
  Simulator& s = simulator();
  s.memory.remove(*region);
  s.progress.wait(lock, [&] { return region->running == 0 || s.leaving; });
}

void Simulator::changed() {
  progress.notify_all();
  for (const StreamPtr& stream : streams) stream->nudge();
}

Device& Simulator::device(Ordinal ordinal) {
  require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size(), invalid_device);
  return devices[static_cast<std::size_t>(ordinal)];
}

}  // namespace weft::cuda_sim
