// The symbols that libnixl looks up in this library.
#include <exception>
#include <weft/version.hpp>

#include "base/log.hpp"
#include "nixl/abi.hpp"
#include "nixl/backend.hpp"
#include "nixl/libnixl.hpp"
#include "nixl/options.hpp"
#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

Result<std::unique_ptr<Backend>> open_backend(const abi::InitParameters& init, const void* caller) {
  auto options = read_options(init);
  if (!options) return fail(std::move(options.error()));
  const LibNixl library = libnixl_at(caller);
  if (!options->unchecked)
    if (auto checked = check(library, init.type); !checked) return fail(std::move(checked.error()));
  return Backend::open(init, options->config, library);
}

abi::BackendEngine* create_engine(const abi::InitParameters* init) {
  try {
    auto backend = open_backend(*init, __builtin_return_address(0));
    if (backend) return backend->release();
    refuse("it can't be created", backend.error());
  } catch (const std::exception& error) {
    core::log(LogLevel::error, "NIXL backend: it can't be created: {}", error.what());
  }
  return nullptr;
}

void destroy_engine(abi::BackendEngine* engine) {
  delete engine;
}

}  // namespace
}  // namespace weft::nixl

extern "C" [[gnu::visibility("default")]] weft::nixl::abi::Plugin* nixl_plugin_init() {
  using namespace weft::nixl;
  static abi::Plugin plugin = {1,
                               create_engine,
                               destroy_engine,
                               [] { return "WEFT"; },
                               [] { return WEFT_VERSION; },
                               own_parameters,
                               Backend::memory_types};
  return &plugin;
}

extern "C" [[gnu::visibility("default")]] void nixl_plugin_fini() {}
