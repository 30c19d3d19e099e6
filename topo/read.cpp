#include "read.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace weft::topo {
namespace {

// These would start drivers of GPUs to learn what PCI tells anyway.
constexpr const char* unwanted_components[] = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"};

Error unreadable(const std::string& xml, const std::string& why) {
  return Error(Code::invalid_argument, fmt::format("no topology in {}: {}", xml, why));
}

Result<void> check_file(const std::string& xml) {
  std::error_code failed;
  const auto status = std::filesystem::status(xml, failed);
  if (!std::filesystem::exists(status))
    return fail(Code::not_found,
                fmt::format("no topology in {}: {}", xml,
                            failed ? failed.message() : std::string(std::strerror(ENOENT))));
  if (!std::filesystem::is_regular_file(status))
    return fail(unreadable(xml, "it is not a regular file"));
  return {};
}

}  // namespace

Result<HwlocPtr> read_machine(const std::string& xml) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0)
    return fail(Code::unavailable, "hwloc can't start: " + std::string(std::strerror(errno)));
  HwlocPtr owned(made);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  for (const char* each : unwanted_components)
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, each);
  if (!xml.empty()) {
    if (auto there = check_file(xml); !there) return fail(std::move(there.error()));
    if (hwloc_topology_set_xml(made, xml.c_str()) != 0)
      return fail(unreadable(xml, std::strerror(errno)));
  }
  if (hwloc_topology_load(made) != 0) {
    if (xml.empty())
      return fail(Code::unavailable,
                  "hwloc can't read this machine: " + std::string(std::strerror(errno)));
    return fail(unreadable(xml, "hwloc can't read it (its XML has to be of version 2)"));
  }
  return owned;
}

const char* info_of(const hwloc_obj& object, const char* name) {
  return hwloc_obj_get_info_by_name(const_cast<hwloc_obj*>(&object), name);
}

}  // namespace weft::topo
