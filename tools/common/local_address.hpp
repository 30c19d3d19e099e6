// Which of this machine's addresses leads to another one.
#pragma once

#include <string>

namespace weft::tool {

/// The numeric local address from which packets to "host:port" would leave; empty where it can't be
/// told, or where the engine's own choice (loopback) is right.
std::string local_address_towards(const std::string& peer);

/// Whether "host:port" is an address of this machine's own.
bool is_this_machine(const std::string& peer);

}  // namespace weft::tool
