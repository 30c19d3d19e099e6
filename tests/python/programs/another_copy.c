// What another copy of the libraries that a wheel brings would define, to be loaded globally.
// Nothing of the wheel's may call it.
#define NOT_TO_BE_CALLED(name) \
  void name(void) {            \
    __builtin_trap();          \
  }

NOT_TO_BE_CALLED(hwloc_topology_init)
NOT_TO_BE_CALLED(hwloc_topology_load)
NOT_TO_BE_CALLED(hwloc_topology_destroy)
NOT_TO_BE_CALLED(hwloc_bitmap_alloc)
NOT_TO_BE_CALLED(XXH3_64bits)
NOT_TO_BE_CALLED(_ZN6spdlog6loggerD1Ev)
