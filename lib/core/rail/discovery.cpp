#include "rail/discovery.hpp"

#include <algorithm>
#include <utility>

#include "base/process.hpp"
#include "config/config_check.hpp"
#include "config/settings.hpp"
#include "device/device.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

providers::Wanted wanted_of(const Config& config, const Locality& here) {
  providers::Wanted wanted;
  wanted.providers = config.providers;
  wanted.allowed = config.policy.providers;
  wanted.nics = config.nics;
  wanted.max_nics = config.max_nics * std::max(1U, here.gpus());
  wanted.rail_address = config.rail_address;
  wanted.near_nics = here.near_nics();
  wanted.near_nodes = topo::usable_nodes();
  wanted.allow_emulation = config.allow_emulation;
  // libfabric may start the driver for it, which is nothing to do to a program without GPUs.
  wanted.device_memory = !config.gpus.empty() || device_driver_loaded();
  return wanted;
}

}  // namespace

Result<Discovery> discover_for(const Config& config) {
  auto here = Locality::look(config);
  if (!here) return fail(std::move(here.error()));
  providers::Wanted wanted = wanted_of(config, *here);
  auto found = providers::discover(wanted);
  if (!found) return fail(std::move(found.error()));
  return Discovery{std::move(*here), std::move(wanted), std::move(*found)};
}

Result<Discovery> discover_before_opening(const Config& call) {
  fill_standard_descriptors();
  return resolve_settings(call, environment_for(call))
      .and_then(checked_config)
      .and_then(discover_for);
}

}  // namespace weft::core
