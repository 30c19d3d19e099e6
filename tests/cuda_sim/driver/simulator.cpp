#include "driver/simulator.hpp"

#include <unistd.h>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

// Leaves no thread in the middle of memory while the process is taken down; all others may sleep
// on. Takes no lock: a signal's handler may end the process inside of a call.
__attribute__((destructor)) void leave() {
  Simulator& s = simulator();
  if (s.process.load() != getpid()) return;
  s.leaving = true;
  while (const unsigned touching = s.touching) s.touching.wait(touching);
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
