#include "facts.hpp"

#include <fmt/format.h>

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

Function root_complex(std::vector<Function> below) {
  return {"", "", "", 0, "", {}, std::move(below)};
}

Function bridge(std::string pci, double link, std::vector<Function> below, std::string ids) {
  return {std::move(pci), "0604", std::move(ids), link, "", {}, std::move(below)};
}

}  // namespace weft::facts
