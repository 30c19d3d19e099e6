#include "nixl/plugin_file.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libplugin_WEFT.so";

/// The build says where commands and libraries go; the whole may have been moved since.
fs::path installed(const fs::path& commands) {
  const fs::path libraries = fs::path(WEFT_LIBRARIES).lexically_relative(WEFT_COMMANDS);
  return (commands / libraries / "weft" / file_name).lexically_normal();
}

fs::path built(const fs::path& commands) {
  return (commands / "../lib/faces/nixl" / file_name).lexically_normal();
}

}  // namespace

Result<std::string> find_nixl_plugin() {
  std::error_code error;
  const fs::path commands = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& each : {installed(commands), built(commands)})
    if (fs::is_regular_file(each, error)) return each.string();
  return fail(Code::not_found,
              fmt::format("this Weft has no plug-in for NIXL, which -Dnixl=disabled leaves out: "
                          "neither '{}' nor '{}' is there",
                          installed(commands).string(), built(commands).string()));
}

}  // namespace weft::tool
