// Lets fuzzing go on where hwloc itself crashes, as 2.9 does on many a file that is damaged: the
// load has failed then, and what hwloc held is left alone. Crashes of Weft's own code end the run.
#include <dlfcn.h>
#include <hwloc.h>
#include <setjmp.h>

#include <csignal>

#include "target.hpp"

namespace {

sigjmp_buf before;
hwloc_topology_t crashed = nullptr;

void go_back(int) {
  siglongjmp(before, 1);
}

/// Takes the signals of a crash as long as it is there.
class Guard {
 public:
  Guard() {
    struct sigaction action {};
    action.sa_handler = go_back;
    action.sa_flags = SA_NODEFER;
    for (std::size_t i = 0; i < count; ++i) sigaction(signals[i], &action, &earlier_[i]);
  }
  ~Guard() {
    for (std::size_t i = 0; i < count; ++i) sigaction(signals[i], &earlier_[i], nullptr);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  static constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
  static constexpr std::size_t count = std::size(signals);
  struct sigaction earlier_[count];
};

template <typename Function>
Function* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  weft::fuzz::require(found != nullptr, "hwloc lacks a function");
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// In place of hwloc's.
extern "C" int hwloc_topology_load(hwloc_topology_t topology) {
  static const auto load = next<int(hwloc_topology_t)>("hwloc_topology_load");
  const Guard guard;
  if (sigsetjmp(before, 1) == 0) return load(topology);
  crashed = topology;
  return -1;
}

extern "C" void hwloc_topology_destroy(hwloc_topology_t topology) {
  static const auto destroy = next<void(hwloc_topology_t)>("hwloc_topology_destroy");
  if (topology != crashed) destroy(topology);
  crashed = nullptr;
}
