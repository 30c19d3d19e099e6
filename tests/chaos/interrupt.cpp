#include "interrupt.hpp"

#include <signal.h>

#include <initializer_list>

namespace weft::chaos {
namespace {

volatile sig_atomic_t asked = 0;

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = 1; };
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(each, &action, &before);
    if (before.sa_handler == SIG_IGN) sigaction(each, &before, nullptr);  // nohup
  }
}

bool interrupted() {
  return asked != 0;
}

}  // namespace weft::chaos
