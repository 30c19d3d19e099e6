#include "common/interrupt.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::tool {
namespace {

/// The process is meant to outlive its terminal, as with nohup.
bool hangup_is_ignored() {
  struct sigaction now {};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!hangup_is_ignored()) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void take_signals() {
  // Some builds of libfabric load libinfinipath, which installs handlers of its own for these
  // before main() and prints a backtrace when they come.
  for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE})
    ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = ending_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

int open_signal_descriptor() {
  const sigset_t set = ending_signals();
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int read_signal(int descriptor) {
  signalfd_siginfo info{};
  return read(descriptor, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

std::string signal_sentence(int signal) {
  return signal == SIGINT ? "interrupted by Ctrl-C (SIGINT)"
                          : fmt::format("ended by signal {} ({})", signal, strsignal(signal));
}

Interrupt::Interrupt(std::function<void()> on_signal)
    : signals_(open_signal_descriptor()), stop_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this, on_signal = std::move(on_signal)] { watch(on_signal); });
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  while (write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(signals_);
  close(stop_);
}

void Interrupt::watch(const std::function<void()>& on_signal) {
  for (;;) {
    pollfd fds[] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[1].revents != 0) return;
    const int signal = read_signal(signals_);
    if (signal == 0 || signal_ != 0) continue;
    signal_ = signal;
    on_signal();
  }
}

}  // namespace weft::tool
