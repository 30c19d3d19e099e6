// Keeps the application's signal handlers as they were.
#pragma once

#include <signal.h>

#include <array>

namespace weft::providers {

/// The shm provider of libfabric installs handlers of its own when an endpoint is made (1.17,
/// prov/shm/src/smr_ep.c: smr_endpoint), and a library that Debian's libfabric brings along does so
/// as it is loaded (libpsm_infinipath: all of these). They belong to the application: an object of
/// this kind around such a call puts back what was there.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
  }
  ~SignalHandlersKept() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  static constexpr std::array signals{SIGBUS, SIGSEGV, SIGTERM, SIGINT, SIGILL, SIGABRT};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace weft::providers
