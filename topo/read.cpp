#include "topo/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "topo/xml.hpp"

namespace weft::topo {
namespace {

// These would start drivers of GPUs to learn what PCI tells anyway.
constexpr const char* unwanted_components[] = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"};

Error unreadable(const std::string& xml, const std::string& why) {
  return Error(Code::invalid_argument, fmt::format("no topology in {}: {}", xml, why));
}

/// A thousand GPUs and NICs take some hundred kilobytes.
constexpr std::uintmax_t most_bytes = 64 << 20;

/// As libxml2 has it. hwloc's own parser has no limit, and recurses.
constexpr int most_nested = 256;

Result<std::string> read_file(const std::string& xml) {
  std::error_code failed;
  const auto status = std::filesystem::status(xml, failed);
  if (!std::filesystem::exists(status))
    return fail(Code::not_found,
                fmt::format("no topology in {}: {}", xml,
                            failed ? failed.message() : std::string(std::strerror(ENOENT))));
  if (!std::filesystem::is_regular_file(status))
    return fail(unreadable(xml, "it is not a regular file"));
  if (std::filesystem::file_size(xml, failed) > most_bytes || failed)
    return fail(unreadable(xml, failed ? failed.message() : "it is too large"));
  errno = 0;
  std::ifstream in(xml, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) return fail(unreadable(xml, std::strerror(errno)));
  text = plain_xml(text);
  if (nesting(text) > most_nested) return fail(unreadable(xml, "it is nested too deeply"));
  return text;
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
  if (xml.empty()) {
    if (hwloc_topology_load(made) == 0) return owned;
    return fail(Code::unavailable,
                "hwloc can't read this machine: " + std::string(std::strerror(errno)));
  }
  const auto text = read_file(xml);
  if (!text) return fail(text.error());
  // hwloc wants the terminating zero, and copies what it needs.
  if (hwloc_topology_set_xmlbuffer(made, text->c_str(), static_cast<int>(text->size()) + 1) != 0 ||
      hwloc_topology_load(made) != 0)
    return fail(unreadable(xml, why_refused(*text)));
  return owned;
}

const char* info_of(const hwloc_obj& object, const char* name) {
  return hwloc_obj_get_info_by_name(const_cast<hwloc_obj*>(&object), name);
}

double number_in(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace weft::topo
