// Memory that peers reach by RMA over one rail.
#pragma once

#include <cstdint>
#include <memory>

#include "endpoint.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

struct PeerKey {
  std::unique_ptr<providers::Registration> registration;
  RailKey key;  // of the memory's first byte
};

/// May block.
inline Result<PeerKey> register_for_peers(providers::Endpoint& endpoint, std::uint32_t rail,
                                          void* memory, std::size_t length,
                                          providers::Access access) {
  return endpoint.register_memory(memory, length, access)
      .map([&](std::unique_ptr<providers::Registration>&& made) {
        const bool pointers = endpoint.capability().virtual_addresses;
        const RailKey key{rail, pointers ? reinterpret_cast<std::uintptr_t>(memory) : 0,
                          made->key()};
        return PeerKey{std::move(made), key};
      });
}

}  // namespace weft::core
