#include "providers/libfabric/loaded_files.hpp"

#include <dlfcn.h>
#include <link.h>

namespace weft::providers {
namespace {

std::string_view name_of(std::string_view file) {
  return file.substr(file.rfind('/') + 1);
}

}  // namespace

bool is_renamed(std::string_view file) {
  return name_of(file).starts_with("libfabric-");
}

std::vector<std::string> loaded_libfabrics() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        const std::string_view file = object->dlpi_name;
        if (name_of(file).starts_with("libfabric.so") || is_renamed(file))
          static_cast<std::vector<std::string>*>(into)->emplace_back(file);
        return 0;
      },
      &files);
  return files;
}

std::string file_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

}  // namespace weft::providers
