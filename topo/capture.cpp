// A machine for others to look at, without what identifies it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <weft/topology.hpp>

#include "topo/hwloc.hpp"
#include "topo/os_device.hpp"
#include "topo/read.hpp"

namespace weft {
namespace topo {
namespace {

/// Everything else may name the machine: serial numbers, addresses, hosts.
constexpr std::array harmless = {
    std::string_view("PCIVendor"),    std::string_view("PCIDevice"),
    std::string_view("PCISlot"),      std::string_view("CPUVendor"),
    std::string_view("CPUModel"),     std::string_view("Backend"),
    std::string_view("GPUVendor"),    std::string_view("GPUModel"),
    std::string_view("OSName"),       std::string_view("OSRelease"),
    std::string_view("Architecture"), std::string_view("hwlocVersion"),
    std::string_view("Model"),        std::string_view("Size"),
};

bool is_harmless(std::string_view name) {
  return is_port_state(name) || std::find(harmless.begin(), harmless.end(), name) != harmless.end();
}

/// hwloc has no call for it before version 3, but the list is the caller's to see and change.
void leave_out_names(hwloc_obj& object) {
  auto* const end = object.infos + object.infos_count;
  auto* const kept = std::stable_partition(
      object.infos, end, [](const hwloc_info_s& info) { return is_harmless(info.name); });
  for (auto* each = kept; each != end; ++each) {
    std::free(each->name);
    std::free(each->value);
  }
  object.infos_count = static_cast<unsigned>(kept - object.infos);
}

void prepare(hwloc_obj& object) {
  leave_out_names(object);
  if (object.type == HWLOC_OBJ_OS_DEVICE && object.name != nullptr) note_state(object);
  for (hwloc_obj_t first : {object.first_child, object.memory_first_child, object.io_first_child,
                            object.misc_first_child})
    for (hwloc_obj_t each = first; each != nullptr; each = each->next_sibling) prepare(*each);
}

}  // namespace
}  // namespace topo

Result<std::string> capture_topology() {
  using namespace topo;
  auto machine = read_machine({});
  if (!machine) return fail(std::move(machine.error()));
  prepare(*hwloc_get_root_obj(machine->get()));
  char* text = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(machine->get(), &text, &length, 0) != 0)
    return fail(Code::out_of_memory, "hwloc can't make XML of this machine");
  std::string xml(text);  // the length counts the terminating zero
  hwloc_free_xmlbuffer(machine->get(), text);
  return xml;
}

}  // namespace weft
