#include "memory/nic_access.hpp"

#include <fmt/format.h>

#include <utility>

namespace weft::core {

void NicAccess::prepare(const Capability& record) {
  if (all_.hmem == providers::Hmem::none || !record.device_memory) return;
  if (std::exchange(prepared_, true)) return;
  const auto ready = device_.check_gpudirect().and_then(
      [&] { return device_.sync_memops(all_.address, all_.length); });
  if (!ready) {
    problem_ = ready.error();
    return;
  }
  auto dmabuf = device_.export_dmabuf(all_.address, all_.length);
  if (dmabuf)
    all_.dmabuf = std::move(*dmabuf);
  else
    no_dmabuf_ = dmabuf.error().message();
}

Result<std::unique_ptr<providers::Registration>> NicAccess::open(providers::Endpoint& endpoint,
                                                                 std::size_t offset,
                                                                 std::size_t bytes,
                                                                 providers::Access access) const {
  const providers::Extent part = all_.part(offset, bytes);
  if (part.hmem == providers::Hmem::none) return endpoint.register_memory(part, access);
  const Capability& record = endpoint.capability();
  if (!record.device_memory)
    return fail(Code::unsupported,
                fmt::format("{} {} can't reach a GPU's memory: {}", record.provider, record.domain,
                            record.device_memory_problem));
  if (problem_) return fail(*problem_);
  return open_device(endpoint, part, access);
}

Result<std::unique_ptr<providers::Registration>> NicAccess::open_device(
    providers::Endpoint& endpoint, const providers::Extent& part, providers::Access access) const {
  std::string first = no_dmabuf_;
  if (part.dmabuf != nullptr && endpoint.capability().dmabuf) {
    auto made = endpoint.register_memory(part, access);
    if (made) return made;
    first = fmt::format("by DMA buffer {}", made.error().message());
  } else if (part.dmabuf != nullptr) {
    first = "libfabric takes no DMA buffers";
  }
  auto made = endpoint.register_memory(part.by_pointer(), access);
  if (made) return made;
  return fail(
      Error(made.error().code(), fmt::format("{}; by pointer {}", first, made.error().message()))
          .with_fabric_code(made.error().fabric_code()));
}

}  // namespace weft::core
