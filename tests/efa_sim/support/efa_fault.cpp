// Changes settings of the device over which with-efa runs a command, while it runs.
#include <fmt/format.h>

#include <exception>

#include "efa_fabric.hpp"

int main(int count, char** values) {
  if (count < 2) {
    fmt::print(stderr, "Usage: efa-fault name=value ... | clear | counters\n");
    return 2;
  }
  try {
    auto control = weft::efa_sim::EfaControl::of_environment();
    std::string settings;
    for (int i = 1; i < count; ++i) settings += std::string(values[i]) + ' ';
    if (settings != "counters ") {
      control.set(settings);
      return 0;
    }
    const auto counters = control.counters();
    fmt::print("operations {}\npackets {}\novertakes {}\nduplicates {}\nnot_ready {}\n",
               counters.operations, counters.packets, counters.overtakes, counters.duplicates,
               counters.not_ready);
    fmt::print("refused {}\nfull_queues {}\ndoorbells {}\n", counters.refused, counters.full_queues,
               counters.doorbells);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "efa-fault: {}\n", error.what());
    return 1;
  }
}
