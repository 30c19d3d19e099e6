#undef _FILE_OFFSET_BITS  // With it, fopen is another name for fopen64.

#include "kernel_symbols.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<bool> hidden{false};

}  // namespace

/// Stands before libc's, as all of a program's own functions do for the libraries it has loaded.
extern "C" __attribute__((visibility("default"))) std::FILE* fopen(const char* path,
                                                                   const char* mode) {
  using Open = std::FILE* (*)(const char*, const char*);
  static const auto open = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "fopen"));
  return open(hidden && std::strcmp(path, "/proc/kallsyms") == 0 ? "/dev/null" : path, mode);
}

namespace weft::test {

void hide_kernel_symbols() {
  hidden = true;
}

}  // namespace weft::test
