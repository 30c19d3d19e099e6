// Where memory lies, as the command line says it: "host", "node:1", "gpu:3".
#pragma once

#include <string>
#include <string_view>
#include <weft/memory.hpp>

namespace weft::tool {

/// `invalid_argument` for anything else.
Result<Place> parse_place(std::string_view text);

/// An engine and memory of its.
struct Destination {
  std::string address;  ///< "host:port"; empty: another engine in this process.
  Place place;
};

/// "10.0.0.2:7000:gpu:1", "[::1]:7000", "local:node:0", "": the memory may be left out.
Result<Destination> parse_destination(std::string_view text);

}  // namespace weft::tool
