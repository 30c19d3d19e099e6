// Says which GPUs there are; exits with 77 where there is none. So "run" learns whether it can.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <stdexcept>

#include "device/cuda/driver.hpp"
#include "interface/application.hpp"

namespace weft::cuda_sim {
namespace {

constexpr int no_gpu = 77;

std::string name_of(Ordinal gpu) {
  std::array<char, 256> name{};
  cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, gpu);
  return name.data();
}

void describe(const Driver& driver, int count) {
  int version = 0;
  driver.driver_version(&version);
  fmt::print("CUDA {}.{}\n", version / 1000, version % 1000 / 10);
  for (Ordinal gpu = 0; gpu < count; ++gpu) {
    std::array<char, 32> pci{};
    std::size_t bytes = 0;
    driver.device_pci(pci.data(), static_cast<int>(pci.size()) - 1, gpu);
    cuDeviceTotalMem_v2(&bytes, gpu);
    fmt::print("GPU {}: {}, {}, {} MiB\n", gpu, name_of(gpu), pci.data(), bytes >> 20);
  }
}

int run() {
  const auto driver = Driver::load();
  if (!driver) {
    fmt::print("{}\n", driver.error().message());
    return no_gpu;
  }
  int count = 0;
  (*driver)->device_count(&count);
  if (count == 0) {
    fmt::print("the CUDA driver finds no GPU\n");
    return no_gpu;
  }
  describe(**driver, count);
  return 0;
}

}  // namespace
}  // namespace weft::cuda_sim

int main() {
  return weft::cuda_sim::run();
}
