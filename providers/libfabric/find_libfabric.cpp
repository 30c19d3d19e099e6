// libfabric found at run time: in builds with Meson's option libfabric=runtime.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>

#include "providers/libfabric/libfabric.hpp"
#include "providers/libfabric/loaded_files.hpp"
#include "providers/libfabric/signal_handlers.hpp"

namespace weft::providers {
namespace {

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};
using Handle = std::unique_ptr<void, Close>;

/// Null if it can't be loaded. The functions stay out of the way of other libraries: those that are
/// linked with libfabric find it by its soname. Null for a file: the program and what it links.
Handle open(const char* file, int flags = 0) {
  const SignalHandlersKept kept;
  return Handle(dlopen(file, RTLD_NOW | RTLD_LOCAL | flags));
}

std::string why_not_loaded() {
  const char* const why = dlerror();
  return why != nullptr ? why : "no reason is known";
}

Result<Libfabric> look_up(void* handle, const std::string& file) {
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* const found = dlsym(handle, name);
    if (found == nullptr && missing == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  Libfabric library;
  decltype(&fi_version) version = nullptr;
  find(version, "fi_version");
  find(library.getinfo, "fi_getinfo");
  find(library.dupinfo, "fi_dupinfo");
  find(library.freeinfo, "fi_freeinfo");
  find(library.fabric, "fi_fabric");
  find(library.strerror, "fi_strerror");
  if (missing != nullptr)
    return fail(Code::unavailable, fmt::format("{} is no libfabric: it lacks {}", file, missing));
  library.file = file_of(reinterpret_cast<void*>(library.getinfo));
  library.version = version();
  return check_version(std::move(library));
}

/// Keeps it loaded to the end of the process if Weft can use it.
Result<Libfabric> take(Handle handle, const std::string& file, std::string found) {
  auto library = look_up(handle.get(), file);
  if (!library) return library;
  handle.release();
  library->found = std::move(found);
  return library;
}

Result<Libfabric> from_named(const std::string& file) {
  if (Handle handle = open(file.c_str()))
    return take(std::move(handle), file, fmt::format("{} names it", libfabric_variable));
  return fail(Code::unavailable, fmt::format("{} names a file that can't be loaded: {}",
                                             libfabric_variable, why_not_loaded()));
}

/// Also one that a package has brought, since a second libfabric in a process finds no EFA NICs.
Result<Libfabric> take_loaded(Handle handle, const std::string& file) {
  auto library = take(std::move(handle), file, "this process had loaded it");
  if (library && is_renamed(library->file))
    library->warning = fmt::format(
        "it is of another package, and Weft uses it because a second one in this process would "
        "find no EFA NICs; {} may name another",
        libfabric_variable);
  return library;
}

/// Of the program itself, or loaded since; none: nothing in the process has it.
std::optional<Result<Libfabric>> from_process() {
  if (Handle program = open(nullptr))
    if (void* const function = dlsym(program.get(), "fi_getinfo"))
      return take_loaded(std::move(program), file_of(function));
  for (const std::string& file : loaded_libfabrics())
    if (Handle handle = open(file.c_str(), RTLD_NOLOAD))
      return take_loaded(std::move(handle), file);
  return std::nullopt;
}

/// None: it has no such file.
std::optional<Result<Libfabric>> from_folder(const std::string& folder, const std::string& soname) {
  const std::string file = fmt::format("{}/{}", folder, soname);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  if (Handle handle = open(file.c_str()))
    return take(std::move(handle), file, fmt::format("{} has it", folder));
  return fail(Code::unavailable, fmt::format("libfabric can't be loaded: {}", why_not_loaded()));
}

Result<Libfabric> from_system(const LibfabricPlaces& places) {
  if (Handle handle = open(places.system.c_str()))
    return take(std::move(handle), places.system, "the system has it");
  return fail(Code::unavailable,
              fmt::format("there is no libfabric: not in this process, not in {}, and the system "
                          "says: {}",
                          fmt::join(places.folders, ", "), why_not_loaded()));
}

}  // namespace

Result<Libfabric> find_libfabric(const LibfabricPlaces& places) {
  if (!places.named.empty()) return from_named(places.named);
  if (auto found = from_process()) return std::move(*found);
  for (const std::string& folder : places.folders)
    if (auto found = from_folder(folder, places.system)) return std::move(*found);
  return from_system(places);
}

}  // namespace weft::providers
