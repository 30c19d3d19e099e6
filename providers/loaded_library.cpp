#include "providers/loaded_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <rdma/fabric.h>

#include <string_view>

namespace weft::providers {
namespace {

/// Packages that bring their own give it names like libfabric-1a2b3c4d.so.1.
bool is_libfabric(std::string_view file) {
  return file.substr(file.rfind('/') + 1).starts_with("libfabric");
}

}  // namespace

LoadedLibraries loaded_libraries() {
  LoadedLibraries found;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&fi_getinfo), &info) != 0) found.in_use = info.dli_fname;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        auto& all = *static_cast<LoadedLibraries*>(into);
        if (is_libfabric(object->dlpi_name) && all.in_use != object->dlpi_name)
          all.others.emplace_back(object->dlpi_name);
        return 0;
      },
      &found);
  return found;
}

}  // namespace weft::providers
