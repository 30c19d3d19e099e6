// How NICs get at a segment's memory by themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <weft/error.hpp>

#include "device/device.hpp"
#include "providers/endpoint.hpp"

namespace weft::core {

class NicAccess {
 public:
  NicAccess(const Device& device, void* memory, std::size_t bytes,
            providers::FilePlace file = {}) noexcept
      : device_(device), all_{memory, bytes, device.hmem(), device.ordinal(), {}, file, &device} {}

  /// Registers a part of the memory with a rail. A device's goes by DMA buffer where rail and
  /// driver have such, else by pointer; the error names what speaks against either. May block.
  /// prepare() comes first.
  Result<std::unique_ptr<providers::Registration>> open(providers::Endpoint& endpoint,
                                                        std::size_t offset, std::size_t bytes,
                                                        providers::Access access) const;
  /// Gets a device's memory ready for such NICs. Once is enough, before other threads see it.
  void prepare(const Capability& record);
  /// The memory may go: what is registered keeps what it needs.
  void let_go() noexcept { all_.dmabuf.reset(); }

  const providers::Extent& all() const noexcept { return all_; }

 private:
  Result<std::unique_ptr<providers::Registration>> open_device(providers::Endpoint& endpoint,
                                                               const providers::Extent& part,
                                                               providers::Access access) const;

  const Device& device_;
  providers::Extent all_;
  bool prepared_ = false;
  std::optional<Error> problem_;  // no NIC may have it
  std::string no_dmabuf_;         // why there is none
};

}  // namespace weft::core
