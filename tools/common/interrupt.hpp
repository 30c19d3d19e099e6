// Ctrl-C and its like, taken as events instead of in handlers.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace weft::tool {

/// First thing in main, before any thread: SIGINT, SIGTERM and SIGHUP (unless it is ignored) wait
/// to be read from a descriptor, a closed pipe is an error of write(), and crashes end the process
/// as the system has it.
void take_signals();

/// A signalfd with these, or -1. Close it.
int open_signal_descriptor();
/// Reads one signal; 0 if there is none.
int read_signal(int descriptor);

/// Exit code of a process that a signal ended.
constexpr int signal_exit_code(int signal) {
  return 128 + signal;
}
/// "interrupted by Ctrl-C" or "terminated".
std::string signal_sentence(int signal);

/// Watches for the first signal, while it lives.
class Interrupt {
 public:
  /// `on_signal` runs on a thread of its own, and makes what waits come back early.
  explicit Interrupt(std::function<void()> on_signal);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// 0 as long as none came.
  int signal() const noexcept { return signal_; }

 private:
  void watch(const std::function<void()>& on_signal);

  std::atomic<int> signal_{0};
  int signals_;
  int stop_;
  std::thread thread_;
};

}  // namespace weft::tool
