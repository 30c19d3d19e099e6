// Memory that peers reach by RMA over one rail.
#pragma once

#include <cstdint>
#include <memory>

#include "providers/endpoint.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

struct PeerKey {
  std::unique_ptr<providers::Registration> registration;
  RailKey key;  // of the memory's first byte
};

/// Of memory that is registered.
inline PeerKey peer_key(const providers::Endpoint& endpoint, std::uint32_t rail, const void* memory,
                        std::unique_ptr<providers::Registration> made) {
  const bool pointers = endpoint.capability().virtual_addresses;
  const RailKey key{rail, pointers ? reinterpret_cast<std::uintptr_t>(memory) : 0, made->key()};
  return {std::move(made), key};
}

/// May block.
inline Result<PeerKey> register_for_peers(providers::Endpoint& endpoint, std::uint32_t rail,
                                          const providers::Extent& memory,
                                          providers::Access access) {
  return endpoint.register_memory(memory, access)
      .map([&](std::unique_ptr<providers::Registration>&& made) {
        return peer_key(endpoint, rail, memory.address, std::move(made));
      });
}

}  // namespace weft::core
