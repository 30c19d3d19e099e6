#include "device/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>

#include "base/sync.hpp"

namespace weft::core::cuda {
namespace {

// The name under which NVIDIA's driver installs it on Linux.
constexpr const char* library = "libcuda.so.1";

Result<Driver> entry_points_of(void* handle) {
  Driver driver;
  const char* missing = nullptr;
#define WEFT_LOOK_UP(name, symbol, ...) \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(handle, symbol));
#define WEFT_REQUIRE(name, symbol, ...) \
  WEFT_LOOK_UP(name, symbol)            \
  if (driver.name == nullptr) missing = symbol;
  WEFT_CUDA_ENTRY_POINTS(WEFT_REQUIRE)
  WEFT_CUDA_LATER_ENTRY_POINTS(WEFT_LOOK_UP)
#undef WEFT_REQUIRE
#undef WEFT_LOOK_UP
  if (missing != nullptr)
    return fail(Code::unavailable, fmt::format("{} lacks {}", library, missing));
  if (const Status status = driver.init(0); status != success)
    return fail(driver.error("cuInit", status));
  return driver;
}

/// As dlopen(3) with `flags`; what has been found once stays.
Result<const Driver*> find(int flags) {
  static Mutex mutex;
  static std::optional<Driver> known;
  const Lock lock(mutex);
  if (known) return &*known;
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) {
    const char* const why = dlerror();  // null where nothing but RTLD_NOLOAD forbids it
    return fail(Code::unavailable, fmt::format("there is no CUDA driver: {}",
                                               why != nullptr ? why : "none is loaded"));
  }
  auto driver = entry_points_of(handle);
  if (!driver) {
    dlclose(handle);
    return fail(std::move(driver.error()));
  }
  known = *driver;
  return &*known;
}

}  // namespace

bool Driver::loaded() noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);  // others have it open
  return handle != nullptr;
}

const Driver* Driver::present() {
  const auto driver = find(RTLD_NOLOAD);
  return driver ? *driver : nullptr;
}

Result<const Driver*> Driver::load() {
  return find(0);
}

Error Driver::error(const char* symbol, Status status) const {
  const char *name = nullptr, *text = nullptr;
  // Both leave null for a status that the driver does not know.
  if (error_name(status, &name) != success || error_text(status, &text) != success)
    name = text = "unknown";
  const Code code = status == out_of_memory ? Code::out_of_memory : Code::unavailable;
  return Error(code, fmt::format("{} failed: {} ({} {})", symbol, text, name, status));
}

}  // namespace weft::core::cuda
