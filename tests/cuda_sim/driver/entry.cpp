#include "driver/entry.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

namespace weft::cuda_sim {

bool& in_host_function() {
  thread_local bool inside = false;
  return inside;
}

void admit(Simulator& s, const char* symbol, Lock& lock) {
  // Of a process that was forked off no other thread is left, and any of them may have had the
  // lock.
  require(s.process.load() == getpid(), not_initialized);
  require(!in_host_function(), not_permitted);
  lock.lock();
  if (s.faults.blocks(symbol)) {
    ++s.blocked;
    s.progress.wait(lock, [&] { return !s.faults.blocks(symbol) || s.leaving; });
    --s.blocked;
  }
  require(!s.leaving, deinitialized);
  if (const Status planned = s.faults.strike(symbol); planned != success) fail(planned);
  s.captures.admit(symbol);
}

WEFT_CUDA_EXPORT Status cuInit(unsigned flags) {
  Simulator& s = simulator();
  const pid_t process = s.process.load();
  if (process != 0 && process != getpid()) return not_initialized;
  if (flags != 0) return invalid_value;
  const Lock lock(s.mutex);
  try {
    if (const Status planned = s.faults.strike("cuInit"); planned != success) return planned;
    s.initialise();
    return success;
  } catch (const Failure& failure) {
    return failure.status;
  }
}

WEFT_CUDA_EXPORT Status cuDriverGetVersion(int* version) {
  if (version == nullptr) return invalid_value;
  *version = 12080;
  return success;
}

WEFT_CUDA_EXPORT Status cuGetErrorName(Status status, const char** name) {
  if (name == nullptr) return invalid_value;
  *name = name_of(status);
  return *name != nullptr ? success : invalid_value;
}

WEFT_CUDA_EXPORT Status cuGetErrorString(Status status, const char** text) {
  if (text == nullptr) return invalid_value;
  *text = text_of(status);
  return *text != nullptr ? success : invalid_value;
}

WEFT_CUDA_EXPORT Status cuGetProcAddress_v2(const char* symbol, void** address, int, std::uint64_t,
                                            int* found) {
  if (symbol == nullptr || address == nullptr) return invalid_value;
  // By an address in the driver: a program may have other libraries with such names.
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&cuInit), &self);
  void* const library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  *address = nullptr;
  for (const std::string& name : {std::string(symbol) + "_v2", std::string(symbol)})
    // Through the handle the names of libc could be had too.
    if (library != nullptr && *address == nullptr && name.starts_with("cu"))
      *address = dlsym(library, name.c_str());
  if (library != nullptr) dlclose(library);
  if (found != nullptr) *found = *address != nullptr ? 0 : 1;  // CU_GET_PROC_ADDRESS_...
  return *address != nullptr ? success : not_found;
}

}  // namespace weft::cuda_sim
