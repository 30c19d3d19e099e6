#include "providers/libfabric/registration_request.hpp"

#include "providers/libfabric/fabric.hpp"

namespace weft::providers {
namespace {

fi_hmem_iface interface_of(Hmem hmem) {
  switch (hmem) {
    case Hmem::none:
      return FI_HMEM_SYSTEM;
    case Hmem::cuda:
      return FI_HMEM_CUDA;
    case Hmem::rocr:
      return FI_HMEM_ROCR;
    case Hmem::neuron:
      return FI_HMEM_NEURON;
  }
  return FI_HMEM_SYSTEM;
}

}  // namespace

bool takes_dmabufs() {
#ifdef WEFT_HAVE_FI_MR_DMABUF
  return FI_VERSION_GE(libfabric().version, FI_VERSION(1, 20));
#else
  return false;
#endif
}

RegistrationRequest::RegistrationRequest(const Extent& memory, std::uint64_t access,
                                         std::uint64_t key) {
  vector_ = {memory.address, memory.length};
  attributes_.mr_iov = &vector_;
  attributes_.iov_count = 1;
  attributes_.access = access;
  attributes_.requested_key = key;
  name_device(memory);
#ifdef WEFT_HAVE_FI_MR_DMABUF
  if (memory.dmabuf == nullptr) return;
  dmabuf_.fd = memory.dmabuf->descriptor.get();
  dmabuf_.offset = memory.dmabuf_offset();
  dmabuf_.len = memory.length;
  dmabuf_.base_addr = memory.dmabuf->base;
  attributes_.dmabuf = &dmabuf_;
  flags_ = FI_MR_DMABUF;
#endif
}

void RegistrationRequest::name_device(const Extent& memory) {
  attributes_.iface = interface_of(memory.hmem);
  // ROCm's devices have no number here: libfabric finds them by the address.
  if (memory.hmem == Hmem::cuda) attributes_.device.cuda = memory.ordinal;
  if (memory.hmem == Hmem::neuron) attributes_.device.neuron = memory.ordinal;
}

}  // namespace weft::providers
