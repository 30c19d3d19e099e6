// How an agent's engine is reached, as it travels in libnixl's metadata.
#pragma once

#include <cstdint>
#include <string>
#include <weft/error.hpp>

namespace weft::nixl {

struct Connection {
  std::string engine;
  std::string address;
  std::string host;
  std::uint32_t max_message = 0;
  std::string network;  // of agents that tell it; else empty

  bool operator==(const Connection&) const = default;
};

/// The machine's identity.
std::string this_host();
/// That of the network namespace within the machine; empty where it can't be told.
std::string this_network();

std::string encode(const Connection& connection);
/// From outside, and not trusted: `protocol_mismatch` for what is none.
Result<Connection> decode_connection(const std::string& bytes);

}  // namespace weft::nixl
