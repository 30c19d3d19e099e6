#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

extern char** environ;

namespace weft::chaos {
namespace {

constexpr int patience_ms = 20'000;

}  // namespace

Process::Process(const std::string& name) {
  int orders[2], reports[2];
  if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(reports, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  std::string program = "/proc/self/exe", role = "node", own = name;
  char* const words[] = {program.data(), role.data(), own.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, orders[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, reports[1], STDOUT_FILENO);
  const int failed = posix_spawn(&id_, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(orders[0]);
  close(reports[1]);
  // A frozen node neither speaks nor listens.
  fcntl(reports[0], F_SETFL, O_NONBLOCK);
  fcntl(orders[1], F_SETFL, O_NONBLOCK);
  line_ = std::make_unique<Line>(reports[0], orders[1]);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "posix_spawn");
  watch_ = static_cast<int>(syscall(SYS_pidfd_open, id_, 0));
}

Process::~Process() {
  if (!over_ && id_ > 0) {
    signal(SIGKILL);
    end();
  }
  if (watch_ >= 0) close(watch_);
}

void Process::signal(int number) const {
  kill(id_, number);
}

std::string Process::end() {
  pollfd waited{watch_, POLLIN, 0};
  const bool ends = poll(&waited, 1, patience_ms) == 1;
  if (!ends) signal(SIGKILL);
  int status = 0;
  while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  over_ = true;
  if (!ends) return "does not end";
  if (WIFSIGNALED(status)) return fmt::format("died of signal {}", WTERMSIG(status));
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

}  // namespace weft::chaos
