// Stands between the engines of this process and their endpoints.
#pragma once

#include <cstdint>

namespace weft::chaos {

/// From here on registrations are counted, and now and then a message is sent twice, as it is where
/// one goes by two ways; before any engine is opened.
void watch_endpoints();
/// Registrations that have been made and not closed.
std::int64_t live_registrations();

}  // namespace weft::chaos
