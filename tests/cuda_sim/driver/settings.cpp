#include "driver/settings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace weft::cuda_sim {
namespace {

std::string text_in(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const std::string text = text_in(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 0);
}

/// The list has as many as are named; the others are as usual.
std::vector<GpuSettings> gpus_in(std::size_t count) {
  std::vector<GpuSettings> gpus(count);
  const auto orderings = split(text_in("WEFT_CUDA_SIM_ORDERING"), ',');
  const auto flushes = split(text_in("WEFT_CUDA_SIM_FLUSH"), ',');
  for (std::size_t gpu = 0; gpu < count; ++gpu) {
    if (gpu < orderings.size()) gpus[gpu].writes_ordering = std::stoi(orderings[gpu]);
    if (gpu < flushes.size()) gpus[gpu].flushes = flushes[gpu] != "0";
  }
  return gpus;
}

std::string pci_of(std::size_t gpu) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "0000:%02zx:00.0", (0x53 + 0x11 * gpu) % 0x100);
  return text.data();
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Settings Settings::from_environment() {
  Settings settings{
      .pci = split(text_in("WEFT_CUDA_SIM_PCI"), ','),
      .gpus = {},
      .memory = number_in("WEFT_CUDA_SIM_MEMORY", std::size_t{16} << 30),
      .dmabuf = number_in("WEFT_CUDA_SIM_DMABUF", 0) != 0,
      .gpudirect = number_in("WEFT_CUDA_SIM_GPUDIRECT", 0) != 0,
      .ipc = number_in("WEFT_CUDA_SIM_IPC", 1) != 0,
      .peer = number_in("WEFT_CUDA_SIM_PEER", 1) != 0,
      .queues = static_cast<int>(number_in("CUDA_DEVICE_MAX_CONNECTIONS", 8)),
      .delay_seed = number_in("WEFT_CUDA_SIM_SEED", 1),
      .delay_microseconds = static_cast<unsigned>(number_in("WEFT_CUDA_SIM_DELAY_US", 0)),
      .failures = text_in("WEFT_CUDA_SIM_FAIL"),
  };
  settings.pci.resize(number_in("WEFT_CUDA_SIM_GPUS", 2));
  settings.gpus = gpus_in(settings.pci.size());
  for (std::size_t gpu = 0; gpu < settings.pci.size(); ++gpu)
    if (settings.pci[gpu].empty()) settings.pci[gpu] = pci_of(gpu);
  return settings;
}

}  // namespace weft::cuda_sim
