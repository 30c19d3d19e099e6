// libfabric as the library is linked with it: in builds with Meson's option libfabric=linked.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "providers/libfabric/libfabric.hpp"
#include "providers/libfabric/loaded_files.hpp"

namespace weft::providers {

Result<Libfabric> find_libfabric(const LibfabricPlaces& places) {
  Libfabric library;
  library.file = file_of(reinterpret_cast<void*>(&fi_getinfo));
  library.found = "Weft is linked with it";
  library.version = fi_version();
  library.getinfo = &fi_getinfo;
  library.dupinfo = &fi_dupinfo;
  library.freeinfo = &fi_freeinfo;
  library.fabric = &fi_fabric;
  library.strerror = &fi_strerror;
  std::error_code error;
  if (!places.named.empty() && !std::filesystem::equivalent(places.named, library.file, error))
    return fail(Code::unavailable,
                fmt::format("{} names {}, but this build of Weft is linked with {}",
                            libfabric_variable, places.named, library.file));
  return check_version(std::move(library));
}

}  // namespace weft::providers
