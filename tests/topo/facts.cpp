#include "facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::facts {

std::string address(unsigned bus, unsigned device, unsigned function) {
  return fmt::format("0000:{:02x}:{:02x}.{:x}", bus, device, function);
}

unsigned bus_of(const std::string& pci) {
  return static_cast<unsigned>(std::stoul(pci.substr(5, 2), nullptr, 16));
}

unsigned device_of(const std::string& pci) {
  return static_cast<unsigned>(std::stoul(pci.substr(8, 2), nullptr, 16));
}

std::string buses_below(const Function& bridge) {
  unsigned first = 0xff, last = 0;
  const auto visit = [&](const auto& self, const Function& at) -> void {
    for (const Function& each : at.below) {
      first = std::min(first, bus_of(each.pci));
      last = std::max(last, bus_of(each.pci));
      self(self, each);
    }
  };
  visit(visit, bridge);
  if (bridge.below.empty()) first = last;
  const std::string domain = bridge.below.empty() ? "0000" : bridge.below.front().pci.substr(0, 4);
  return fmt::format("{}:[{:02x}-{:02x}]", domain, first, last);
}

Function root_complex(std::vector<Function> below) {
  return {"", "", "", 0, "", {}, std::move(below)};
}

Function bridge(std::string pci, double link, std::vector<Function> below, std::string ids) {
  return {std::move(pci), "0604", std::move(ids), link, "", {}, std::move(below)};
}

}  // namespace weft::facts
