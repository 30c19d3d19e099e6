#include "machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <weft/topology.hpp>
#include <weft/version.hpp>

namespace weft::perf {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return {};
}

}  // namespace

nlohmann::json machine_facts() {
  utsname system{};
  ::uname(&system);
  nlohmann::json facts{{"host", system.nodename},
                       {"kernel", system.release},
                       {"architecture", system.machine},
                       {"cpu", cpu_model()},
                       {"cores", std::thread::hardware_concurrency()},
                       {"memory_bytes", static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))},
                       {"weft", WEFT_VERSION}};
  if (const auto topology = load_topology()) {
    facts["numa_nodes"] = topology->nodes.size();
    for (const Nic& nic : topology->nics)
      facts["nics"].push_back({{"name", nic.name}, {"gbps", nic.gbps}});
    for (const Gpu& gpu : topology->gpus) facts["gpus"].push_back(gpu.name);
  }
  return facts;
}

}  // namespace weft::perf
