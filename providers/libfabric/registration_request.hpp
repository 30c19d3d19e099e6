// The request to libfabric for a registration.
#pragma once

#include <rdma/fi_domain.h>
#include <sys/uio.h>

#include <cstdint>

#include "providers/extent.hpp"

namespace weft::providers {

/// Whether the library in use, and the headers, register memory by DMA buffers (libfabric 1.20).
bool takes_dmabufs();

/// The arguments of one fi_mr_regattr; it points into itself. A device is named even where NICs
/// find its memory by pointer: by that providers know not to copy it by the CPU (prov/verbs puts
/// small writes of host memory into the work request, VERBS_INJECT_FLAGS).
class RegistrationRequest {
 public:
  /// By the extent's DMA buffer if it has one, which takes_dmabufs().
  RegistrationRequest(const Extent& memory, std::uint64_t access, std::uint64_t key);
  RegistrationRequest(const RegistrationRequest&) = delete;
  RegistrationRequest& operator=(const RegistrationRequest&) = delete;

  const fi_mr_attr& attributes() const noexcept { return attributes_; }
  std::uint64_t flags() const noexcept { return flags_; }

 private:
  void name_device(const Extent& memory);

  iovec vector_{};
#ifdef WEFT_HAVE_FI_MR_DMABUF
  fi_mr_dmabuf dmabuf_{};
#endif
  fi_mr_attr attributes_{};
  std::uint64_t flags_ = 0;
};

}  // namespace weft::providers
