// libfabric as it would be with FI_HMEM: the real one over sockets, between which and Weft this
// stands. Device memory in it is memory of the CPU's, with another name.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <vector>

namespace weft::test {

/// What fi_mr_regattr was given.
struct Asked {
  fi_hmem_iface iface = FI_HMEM_SYSTEM;
  std::uint64_t device = 0;
  const void* address = nullptr;
  std::size_t length = 0;
  std::uint64_t access = 0;
  std::uint64_t flags = 0;
  bool in_context = false;
};

/// Of the process; used by one test at a time.
struct HmemFabric {
  bool offers = true;                      // NICs with FI_HMEM
  int refusal = 0;                         // of device memory, a libfabric error; 0: it is taken
  std::vector<std::uint64_t> hinted;       // capabilities and
  std::vector<int> modes;                  // modes of registration that fi_getinfo was asked for
  bool (*context_is_current)() = nullptr;  // whether a device's is, of the calling thread
  std::vector<Asked> asked;
};
HmemFabric& hmem_fabric();

}  // namespace weft::test
