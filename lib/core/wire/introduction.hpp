// The introduction of two engines that meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/place.hpp>

namespace weft::core {

/// One rail of an engine, as its peers need to know it.
struct RailAddress {
  std::string provider;              // for people
  std::uint32_t protocol = 0;        // FI_PROTO_*
  std::uint32_t address_format = 0;  // FI_ADDR_*
  bool same_host_only = false;
  Blob address;              // from fi_getname, opaque
  std::uint32_t mbps = 0;    // link speed in Mb/s; 0: unknown
  std::uint32_t packet = 0;  // bytes of the longest packet of a message that it takes
  /// Why one of the two that meet can't use it with the other. Empty: it can, as far as is known.
  std::string why_out = {};
};

/// What one engine says of a rail of its own that it can't use with the other.
struct RailOut {
  std::uint32_t rail = 0;
  std::string why;
};

struct Introduction {
  std::string name;
  std::uint64_t incarnation = 0;
  std::string address;  // where its listener can be reached; empty if it has none
  std::vector<RailAddress> rails;
  // Chosen by the introduced engine for this connection; the other side puts it at the head of
  // every message, so that a message can be told to its sender.
  std::uint64_t token = 0;
  std::uint32_t max_message = 0;      // payload bytes that it accepts
  std::uint32_t message_credits = 0;  // messages that it has receives posted for from the beginning
  std::uint32_t bounce_buffers = 0;   // requests that it may be asked to take at a time
  std::uint64_t bounce_buffer_bytes = 0;
  // Of its process, once it is proven that this number means the same here; else 0.
  std::int32_t pid = 0;
};

}  // namespace weft::core
