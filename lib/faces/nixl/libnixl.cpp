#include "nixl/libnixl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <system_error>

#include "nixl/checked_versions.hpp"
#include "nixl/self_test.hpp"

namespace weft::nixl {
namespace {

namespace fs = std::filesystem;

/// "nixl_cu12" of ".nixl_cu12.mesonpy.libs"; empty for other folders.
std::string package_of(const std::string& folder) {
  constexpr std::string_view end = ".mesonpy.libs";
  if (!folder.starts_with('.') || !folder.ends_with(end)) return {};
  return folder.substr(1, folder.size() - 1 - end.size());
}

/// A wheel's version stands in the name of a folder beside its libraries.
std::string wheel_version(const std::string& package, const fs::path& libraries) {
  if (package.empty()) return {};
  const std::string begin = package + "-";
  constexpr std::string_view end = ".dist-info";
  std::error_code failed;
  for (fs::directory_iterator each(libraries.parent_path(), failed), last; !failed && each != last;
       each.increment(failed)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end))
      return name.substr(begin.size(), name.size() - begin.size() - end.size());
  }
  return {};
}

}  // namespace

LibNixl libnixl_at(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code failed;
  const fs::path path = fs::canonical(info.dli_fname, failed);
  if (failed) return {info.dli_fname, {}, {}};
  const fs::path libraries = path.parent_path();
  const std::string package = package_of(libraries.filename().string());
  return {path.string(), package, wheel_version(package, libraries)};
}

Result<void> check(const LibNixl& library, const std::string& backend) {
  if (is_checked(library.version)) return {};
  if (is_like_checked(library.version)) return self_test(library, backend);
  const std::string version =
      library.version.empty() ? "no wheel's, so that its version can't be told" : library.version;
  return fail(Code::protocol_mismatch,
              fmt::format("this libnixl ({}) is {}; its binary interface was checked in the wheels "
                          "{}. Others may crash: the backend parameter unchecked_nixl=true, or "
                          "WEFT_NIXL_UNCHECKED=1, takes that risk",
                          library.path.empty() ? "of unknown path" : library.path, version,
                          fmt::join(checked_versions, ", ")));
}

}  // namespace weft::nixl
