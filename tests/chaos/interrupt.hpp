// The wish of a person, or of a test runner, to end it now.
#pragma once

namespace weft::chaos {

struct Interrupted {};

/// From here on SIGINT, SIGTERM and SIGHUP are heard by interrupted().
void watch_interrupts();
bool interrupted();

}  // namespace weft::chaos
