// Numbers as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::tool {

/// "4.00 GiB", "17 B".
std::string binary_bytes(std::uint64_t bytes);
/// "1.23 s", "4.5 ms", "17 us".
std::string duration(double seconds);
/// "400 Gb/s", "2.5 Gb/s"; of 0 "speed unknown".
std::string bit_rate(double gbps);
/// "131,072".
std::string grouped(std::uint64_t number);
/// "1 request", "2,000 requests".
std::string counted(std::uint64_t number, std::string_view thing);

/// The meaning of K, M and G.
enum class Multiples : std::uint8_t {
  binary,   ///< Of bytes and tokens: 1024, and "KiB" or "KB" means the same.
  decimal,  ///< Of all else: 1000.
};

/// "64K", "17"; `invalid_argument` for anything else.
Result<std::uint64_t> parse_number(std::string_view text, Multiples multiples);

}  // namespace weft::tool
