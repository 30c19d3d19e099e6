// Counts what the engines of this process have registered with their rails.
#pragma once

#include <cstdint>

namespace weft::chaos {

/// From here on; before any engine is opened.
void count_registrations();
/// Registrations that have been made and not closed.
std::int64_t live_registrations();

}  // namespace weft::chaos
