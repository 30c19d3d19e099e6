#include "protocol/machine_facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <weft/topology.hpp>
#include <weft/version.hpp>

#include "common/printable.hpp"
#include "providers/libfabric/libfabric.hpp"

namespace weft::perf {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return {};
}

/// Of new sockets.
std::string congestion_control() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  file >> name;
  return name;
}

/// Results are shown to others.
bool may_be_secret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  constexpr const char* words[] = {"SECRET", "KEY", "TOKEN", "PASS", "AUTH", "CRED"};
  return std::any_of(std::begin(words), std::end(words),
                     [&](const char* word) { return name.find(word) != name.npos; });
}

/// What changes how Weft and libfabric behave.
nlohmann::json environment() {
  nlohmann::json json = nlohmann::json::object();
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view text = *each;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.size() == text.size() || may_be_secret(std::string(name))) continue;
    if (!name.starts_with("WEFT_") && !name.starts_with("FI_")) continue;
    json[tool::printable(name)] = tool::printable(text.substr(name.size() + 1));
  }
  return json;
}

/// Of the one that Weft and the plain loop use here.
std::string libfabric_version() {
  const auto library = providers::load_libfabric();
  return library ? (*library)->version_text() : "none";
}

}  // namespace

nlohmann::json machine_facts() {
  utsname system{};
  ::uname(&system);
  nlohmann::json facts{{"host", system.nodename},
                       {"kernel", system.release},
                       {"congestion_control", congestion_control()},
                       {"architecture", system.machine},
                       {"cpu", cpu_model()},
                       {"cores", std::thread::hardware_concurrency()},
                       {"memory_bytes", static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))},
                       {"weft", WEFT_VERSION},
                       {"libfabric", libfabric_version()},
                       {"environment", environment()}};
  if (const auto topology = load_topology()) {
    facts["numa_nodes"] = topology->nodes.size();
    for (const Nic& nic : topology->nics)
      facts["nics"].push_back({{"name", nic.name}, {"gbps", nic.gbps}});
    for (const Gpu& gpu : topology->gpus) facts["gpus"].push_back(gpu.name);
  }
  return facts;
}

}  // namespace weft::perf
