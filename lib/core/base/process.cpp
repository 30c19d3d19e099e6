#include "base/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/system_error.hpp"

namespace weft::core {

std::string of_this_process(std::string text) {
  for (std::size_t at = 0; (at = text.find("%p", at)) != std::string::npos;)
    text.replace(at, 2, std::to_string(getpid()));
  return text;
}

/// Not /dev/null: programs see by EBADF that nobody reads what they print.
void fill_standard_descriptors() noexcept {
  for (int each = STDIN_FILENO; each <= STDERR_FILENO; ++each)
    while (fcntl(each, F_GETFD) < 0) {
      const int filled = open("/", O_PATH | O_CLOEXEC);
      if (filled < 0) return;  // no descriptor is left: nothing can be opened either
      if (filled > STDERR_FILENO) close(filled);  // another thread was faster
    }
}

Descriptor open_process(std::int32_t pid) noexcept {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(const Descriptor& process) noexcept {
  pollfd ended{process.get(), POLLIN, 0};
  // Negative if a signal came: that says nothing about the process.
  return ::poll(&ended, 1, 0) > 0;
}

bool has_ended(std::int32_t pid) noexcept {
  const Descriptor process = open_process(pid);
  return process.get() >= 0 ? has_ended(process) : errno == ESRCH;
}

Result<Process> Process::of(std::int32_t pid) {
  Descriptor descriptor = open_process(pid);
  if (descriptor.get() >= 0) return Process(std::move(descriptor));
  return fail(Code::unavailable,
              fmt::format("process {} can't be watched: {}", pid, error_text(errno)));
}

Result<Process> Process::again() const {
  Descriptor copy(fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.get() >= 0) return Process(std::move(copy));
  return fail(system_error("fcntl of a process's descriptor"));
}

bool Process::wait_ended(Deadline deadline) const noexcept {
  constexpr std::chrono::milliseconds longest_look(1000);
  while (!ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ending{descriptor_.get(), POLLIN, 0};
    ::poll(&ending, 1, static_cast<int>(std::min(left, longest_look).count()));
  }
  return true;
}

namespace {

std::atomic<std::uint64_t> generation{0};

const int registered =
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t fork_generation() noexcept {
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

Error forked_error() {
  return Error(Code::forked,
               "this engine was opened by the parent process; after fork() the child must open "
               "its own");
}

namespace {

class ByNumber final : public HostProcess {
 public:
  ByNumber(Process process, std::int32_t pid) : HostProcess(std::move(process)), pid_(pid) {}
  Result<Descriptor> open(const Sought& sought) const override {
    return open_link(fmt::format("/proc/{}/fd/{}", pid_, sought.descriptor), sought.kind,
                     sought.mode);
  }
  bool waits() const noexcept override { return false; }
  std::int32_t pid() const noexcept override { return pid_; }

 private:
  const std::int32_t pid_;
};

}  // namespace

Result<std::shared_ptr<const HostProcess>> process_by_number(std::int32_t pid) {
  return Process::of(pid).map([&](Process process) -> std::shared_ptr<const HostProcess> {
    return std::make_shared<ByNumber>(std::move(process), pid);
  });
}

Result<Descriptor> open_link(const std::string& path, std::string_view kind, int mode) {
  std::array<char, 64> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return fail(system_error(path));
  if (!std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with(kind))
    return fail(Code::invalid_argument, fmt::format("{} is no {} of Weft's", path, kind));
  Descriptor opened(::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (opened.get() < 0) return fail(system_error(path));
  return opened;
}

}  // namespace weft::core
