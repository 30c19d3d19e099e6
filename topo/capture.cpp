// A machine in a file, without what identifies it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <weft/topology.hpp>

#include "kernel.hpp"
#include "read.hpp"

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
};

bool is_harmless(std::string_view name) {
  return std::find(harmless.begin(), harmless.end(), name) != harmless.end();
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

void note_speed(hwloc_obj& object) {
  if (object.type != HWLOC_OBJ_OS_DEVICE || object.name == nullptr) return;
  const auto type = object.attr->osdev.type;
  const double gbps = type == HWLOC_OBJ_OSDEV_OPENFABRICS ? rdma_gbps(object.name)
                      : type == HWLOC_OBJ_OSDEV_NETWORK   ? interface_gbps(object.name)
                                                          : 0;
  if (gbps > 0) hwloc_obj_add_info(&object, gbps_info, fmt::format("{}", gbps).c_str());
}

void prepare(hwloc_obj& object) {
  leave_out_names(object);
  note_speed(object);
  for (hwloc_obj_t first : {object.first_child, object.memory_first_child, object.io_first_child,
                            object.misc_first_child})
    for (hwloc_obj_t each = first; each != nullptr; each = each->next_sibling) prepare(*each);
}

Error not_written(const std::string& file, int why) {
  return Error(
      why == EACCES || why == EPERM || why == EROFS ? Code::permission_denied : Code::unavailable,
      fmt::format("{} can't be written: {}", file, std::strerror(why)));
}

/// Whole or not at all.
Result<void> write_file(const std::string& file, std::string_view text) {
  const std::string beside = fmt::format("{}.{}", file, getpid());
  errno = 0;
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out && std::rename(beside.c_str(), file.c_str()) == 0) return {};
  const int why = errno != 0 ? errno : EIO;
  unlink(beside.c_str());
  return fail(not_written(file, why));
}

}  // namespace
}  // namespace topo

Result<void> capture_topology(const std::string& file) {
  using namespace topo;
  auto machine = read_machine({});
  if (!machine) return fail(std::move(machine.error()));
  prepare(*hwloc_get_root_obj(machine->get()));
  char* text = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(machine->get(), &text, &length, 0) != 0)
    return fail(Code::out_of_memory, "hwloc can't make XML of this machine");
  // The length counts the terminating zero.
  auto written = write_file(file, text);
  hwloc_free_xmlbuffer(machine->get(), text);
  return written;
}

}  // namespace weft
