// Changes settings of the device over which with-efa runs a command, while it runs, and says what
// the device did.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#include "efa_fabric.hpp"

namespace weft::efa_sim {
namespace {

void print(const Counters& counters) {
  fmt::print("operations {}\npackets {}\novertakes {}\nduplicates {}\nnot_ready {}\n",
             counters.operations, counters.packets, counters.overtakes, counters.duplicates,
             counters.not_ready);
  fmt::print("refused {}\nfull_queues {}\ndoorbells {}\n", counters.refused, counters.full_queues,
             counters.doorbells);
}

void print(const Registrations& memory) {
  fmt::print("made {}\nregions {}\npages {}\n", memory.made, memory.regions, memory.pages);
}

void run(int count, char** values) {
  auto control = EfaControl::of_environment();
  const std::string_view verb = values[1];
  if (verb == "counters") return print(control.counters());
  if (verb == "registrations")
    return print(control.registrations(count < 3 ? 0 : std::atoi(values[2])));
  std::string settings;
  for (int i = 1; i < count; ++i) settings += std::string(values[i]) + ' ';
  control.set(settings);
}

}  // namespace
}  // namespace weft::efa_sim

int main(int count, char** values) {
  if (count < 2) {
    fmt::print(stderr,
               "Usage: efa-fault name=value ... | clear | counters | registrations [PID]\n");
    return 2;
  }
  try {
    weft::efa_sim::run(count, values);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "efa-fault: {}\n", error.what());
    return 1;
  }
}
