// Protection domains, memory regions and address handles.
#include <cerrno>
#include <chrono>
#include <thread>

#include "objects.hpp"

// libibverbs' header turns these into calls of other functions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace weft::efa_sim;

namespace {

/// What the device answered; none (and errno) if it refused.
std::optional<Reply> ask(const Request& request) {
  const Reply reply = Connection::get().ask(request).message;
  if (reply.error == 0) return reply;
  errno = reply.error;
  return std::nullopt;
}

std::uint32_t object_of(const ibv_pd* domain) {
  return static_cast<const DomainObject*>(domain)->object;
}

}  // namespace

EFA_SIM_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const auto made = ask(request(Verb::create_domain, ContextObject::of(context).object));
  if (!made) return nullptr;
  auto* const domain = new DomainObject{};
  domain->context = context;
  domain->object = made->object;
  return domain;
}

EFA_SIM_EXPORT int ibv_dealloc_pd(ibv_pd* domain) {
  ask(request(Verb::destroy_domain, object_of(domain)));
  delete static_cast<DomainObject*>(domain);
  return 0;
}

EFA_SIM_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length,
                                        std::uint64_t, unsigned rights) {
  Request wanted = request(Verb::create_region, object_of(domain));
  wanted.region = {reinterpret_cast<std::uint64_t>(address), length, rights};
  const auto made = ask(wanted);
  if (!made) return nullptr;
  std::this_thread::sleep_for(std::chrono::nanoseconds(made->nanoseconds));
  memory_is_registered();
  auto* const region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = made->number;
  return region;
}

EFA_SIM_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int rights) {
  return ibv_reg_mr_iova2(domain, address, length, 0, static_cast<unsigned>(rights));
}

EFA_SIM_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, std::size_t length,
                                       std::uint64_t, int rights) {
  return ibv_reg_mr(domain, address, length, rights);
}

EFA_SIM_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int,
                                         int) {
  errno = EOPNOTSUPP;
  return nullptr;
}

EFA_SIM_EXPORT int ibv_dereg_mr(ibv_mr* region) {
  ask(request(Verb::destroy_region, object_of(region->pd), region->lkey));
  delete region;
  return 0;
}

EFA_SIM_EXPORT int efadv_query_mr(ibv_mr*, void* into, std::uint32_t size) {
  std::memset(into, 0, size);
  return 0;
}

EFA_SIM_EXPORT ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  Request wanted = request(Verb::create_address, object_of(domain));
  std::memcpy(wanted.gid.data(), attributes->grh.dgid.raw, sizeof wanted.gid);
  const auto made = ask(wanted);
  if (!made) return nullptr;
  auto* const address = new AddressObject{};
  address->context = domain->context;
  address->pd = domain;
  address->number = static_cast<std::uint16_t>(made->number);
  return address;
}

EFA_SIM_EXPORT int ibv_destroy_ah(ibv_ah* address) {
  auto* const own = static_cast<AddressObject*>(address);
  ask(request(Verb::destroy_address, object_of(address->pd), own->number));
  delete own;
  return 0;
}

EFA_SIM_EXPORT int efadv_query_ah(ibv_ah* address, void* into, std::uint32_t size) {
  EfaAddressAttributes attributes{};
  attributes.ahn = static_cast<AddressObject*>(address)->number;
  return give(attributes, into, size);
}
