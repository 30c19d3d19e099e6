// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace weft::tool {

/// "4.00 GiB", "17 B".
std::string binary_bytes(std::uint64_t bytes);
/// "1.23 s", "4.5 ms", "17 us".
std::string duration(double seconds);
/// "400 Gb/s", "2.5 Gb/s"; of 0 "speed unknown".
std::string bit_rate(double gbps);
/// "131,072".
std::string grouped(std::uint64_t number);

}  // namespace weft::tool
