// How long a lease lasts, on the wire: in nanoseconds, 0 for one without end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <weft/deadline.hpp>

namespace weft::core {

inline std::uint64_t ttl_to(Nanoseconds ttl) {
  if (ttl == unlimited) return 0;
  return static_cast<std::uint64_t>(std::max<Nanoseconds::rep>(1, ttl.count()));
}

inline Nanoseconds ttl_from(std::uint64_t wire) {
  const bool bounded = wire > 0 && wire < static_cast<std::uint64_t>(unlimited.count());
  return bounded ? Nanoseconds(static_cast<Nanoseconds::rep>(wire)) : unlimited;
}

}  // namespace weft::core
