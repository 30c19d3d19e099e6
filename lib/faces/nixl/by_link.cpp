// The plug-in of a Python wheel. NIXL opens it by a link in a folder of its own, and the loader
// takes that folder for $ORIGIN, by which the libraries of a wheel are found. So this file needs
// none: it opens the plug-in itself, which lies beside it, by the name that is not a link.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

void* open_plugin() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(open_plugin), &here) == 0) return nullptr;
  const std::unique_ptr<char, decltype(&std::free)> file(realpath(here.dli_fname, nullptr),
                                                         std::free);
  if (!file) return nullptr;
  const std::string path(file.get());
  return dlopen((path.substr(0, path.rfind('/')) + "/" WEFT_NIXL_PLUGIN).c_str(),
                RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void* nixl_plugin_init() {
  static void* const plugin = open_plugin();
  const auto start =
      plugin ? reinterpret_cast<void* (*)()>(dlsym(plugin, "nixl_plugin_init")) : nullptr;
  if (start) return start();
  const char* why = dlerror();
  std::fprintf(stderr, "weft: " WEFT_NIXL_PLUGIN " can't be opened: %s\n",
               why ? why : "it has no place");
  return nullptr;
}

extern "C" [[gnu::visibility("default")]] void nixl_plugin_fini() {}
