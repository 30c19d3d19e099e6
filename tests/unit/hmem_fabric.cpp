#include "hmem_fabric.hpp"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <memory>

namespace weft::test {
namespace {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// As the real library can be given it.
Info without_hmem(const fi_info* info) {
  Info plain(fi_dupinfo(info));
  plain->caps &= ~FI_HMEM;
  plain->domain_attr->mr_mode &= ~FI_MR_HMEM;
  return plain;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The calls of the real objects, which are all of one kind.
fi_ops_fabric* real_fabric = nullptr;
fi_ops_domain* real_domain = nullptr;
fi_ops_mr* real_registration = nullptr;

int register_memory(fid* domain, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** made) {
  HmemFabric& fabric = hmem_fabric();
  fabric.asked.push_back({attributes->iface, attributes->device.reserved,
                          attributes->mr_iov->iov_base, attributes->mr_iov->iov_len,
                          attributes->access, flags,
                          fabric.context_is_current != nullptr && fabric.context_is_current()});
  if (attributes->iface != FI_HMEM_SYSTEM && fabric.refusal != 0) return -fabric.refusal;
  fi_mr_attr plain = *attributes;
  plain.iface = FI_HMEM_SYSTEM;
  plain.device.reserved = 0;
  return real_registration->regattr(domain, &plain, flags, made);
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  return real_domain->endpoint(domain, without_hmem(info).get(), endpoint, context);
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  const int result = real_fabric->domain(fabric, without_hmem(info).get(), domain, context);
  if (result != 0) return result;
  static fi_ops_domain domain_calls;
  static fi_ops_mr registration_calls;
  real_domain = (*domain)->ops;
  real_registration = (*domain)->mr;
  domain_calls = *real_domain;
  domain_calls.endpoint = open_endpoint;
  registration_calls = *real_registration;
  registration_calls.regattr = register_memory;
  (*domain)->ops = &domain_calls;
  (*domain)->mr = &registration_calls;
  return 0;
}

}  // namespace

HmemFabric& hmem_fabric() {
  static HmemFabric fabric;
  return fabric;
}

// In the place of libfabric's own, since the program comes before it.
extern "C" {
int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints, fi_info** list) {
  HmemFabric& fabric = hmem_fabric();
  const bool wanted = hints != nullptr && (hints->caps & FI_HMEM) != 0;
  if (hints != nullptr) {
    fabric.hinted.push_back(hints->caps);
    fabric.modes.push_back(hints->domain_attr->mr_mode);
  }
  if (wanted && !fabric.offers) return -FI_ENODATA;
  const Info plain = wanted ? without_hmem(hints) : nullptr;
  const int result = real<decltype(&fi_getinfo)>("fi_getinfo")(version, node, service, flags,
                                                               wanted ? plain.get() : hints, list);
  if (result != 0 || !wanted) return result;
  for (fi_info* each = *list; each != nullptr; each = each->next) {
    each->caps |= FI_HMEM;
    each->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  return 0;
}

int fi_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  const int result = real<decltype(&fi_fabric)>("fi_fabric")(attributes, fabric, context);
  if (result != 0) return result;
  static fi_ops_fabric calls;
  real_fabric = (*fabric)->ops;
  calls = *real_fabric;
  calls.domain = open_domain;
  (*fabric)->ops = &calls;
  return 0;
}
}

}  // namespace weft::test
