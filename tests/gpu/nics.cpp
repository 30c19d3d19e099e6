// Says which NICs reach the memory of this machine's GPUs by themselves, as libfabric has it; exits
// with 77 where none does. The last line names their providers, for "run".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "device/cuda/driver.hpp"
#include "direct_nic.hpp"

namespace weft::test {
namespace {

constexpr int no_nic = 77;

/// Adds to `reaching` if a rail of the provider's does.
void look_at_nics(const std::string& provider, std::set<std::string>& reaching) {
  Config config;
  config.providers = {provider};
  const auto engine = Engine::open(config);
  if (!engine) return fmt::print("{}: {}\n", provider, engine.error().message());
  for (const RailInfo& rail : engine->info().rails) {
    const Capability& record = rail.capability;
    const std::string how = !record.device_memory ? record.device_memory_problem
                            : record.dmabuf       ? "by DMA buffers or pointers"
                                                  : "by pointers";
    fmt::print("{} {}: {}\n", provider, record.domain, how);
    if (record.device_memory) reaching.insert(provider);
  }
}

int run() {
  use_direct_nics_if_asked();
  if (const auto driver = core::cuda::Driver::load(); !driver) {
    fmt::print("{}\n", driver.error().message());
    return no_nic;
  }
  std::set<std::string> reaching;
  for (const char* provider : {"efa", "verbs", "tcp"}) look_at_nics(provider, reaching);
  if (reaching.empty()) fmt::print("no NIC here reaches the memory of GPUs\n");
  fmt::print("{}\n", fmt::join(reaching, ","));
  return reaching.empty() ? no_nic : 0;
}

}  // namespace
}  // namespace weft::test

int main() {
  return weft::test::run();
}
