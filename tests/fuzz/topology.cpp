// A machine's topology in hwloc's XML. hwloc parses it, with libxml2 or (HWLOC_LIBXML=0) by itself:
// what these do wrong is found as well, and is not Weft's.
#include <algorithm>
#include <optional>
#include <random>
#include <weft/topology.hpp>

#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  static fuzz::MemoryFile file;
  file.write(fuzz::text_of(data, size));
  const auto machine = load_topology(file.path());
  if (!machine) {
    fuzz::require(machine.error().code() == Code::invalid_argument, "an error of another kind");
    return 0;
  }
  fuzz::require(!machine->nodes.empty(), "a machine without memory");
  const auto nics = preferred_nics(*machine);
  for (const std::size_t nic : nics)
    fuzz::require(nic < machine->nics.size(), "a NIC that there is not");
  const auto look_at = [&](const Place& place) {
    const Affinity found = affinity(*machine, place, nics);
    fuzz::require(found.serving <= found.order.size() && found.order.size() <= nics.size(),
                  "more NICs serve than there are");
    for (const NicCost& each : found.order)
      fuzz::require(each.nic < machine->nics.size(), "a NIC serves that there is not");
  };
  for (const NumaNode& node : machine->nodes) look_at({MemoryKind::host, node.id, -1});
  for (std::size_t gpu = 0; gpu < machine->gpus.size(); ++gpu)
    look_at({MemoryKind::device, -1, static_cast<int>(gpu)});
  for (std::size_t drive = 0; drive < machine->drives.size(); ++drive)
    look_at({MemoryKind::file, -1, -1, static_cast<int>(drive)});
  return 0;
}
