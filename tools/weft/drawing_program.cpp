#include "drawing_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>

#include "child.hpp"
#include "interrupt.hpp"
#include "printable.hpp"

namespace weft::tool {
namespace {

constexpr auto patience = std::chrono::seconds(60);
constexpr std::size_t largest_picture = std::size_t{256} << 20;

/// A file in memory that holds `text`, to be read from its beginning: the program can take it in
/// pieces of any size, at any time, and nobody has to feed it.
Result<Descriptor> file_with(std::string_view text) {
  Descriptor file(memfd_create("weft-graph", MFD_CLOEXEC));
  if (!file.open())
    return fail(Code::unavailable, fmt::format("no file in memory: {}", std::strerror(errno)));
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0)
      return fail(Code::out_of_memory, fmt::format("no file in memory: {}", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// The first line of what a program has complained about.
std::string first_line(const Descriptor& file) {
  std::array<char, 200> bytes;
  const ssize_t count = pread(file.get(), bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return printable(text.substr(0, text.find('\n')));
}

/// A new process gets these standard streams, no blocked signals, and a process group of its own,
/// so that Ctrl-C reaches this process alone.
class Spawning {
 public:
  Spawning(const Descriptor& input, const Descriptor& output, const Descriptor& errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors.get(), STDERR_FILENO);
    sigset_t none, broken_pipe;
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &broken_pipe);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawning() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  /// An error number, or 0.
  int run(pid_t& pid, const char* program, char* const* words) const {
    return posix_spawnp(&pid, program, &actions_, &attributes_, words, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A process and what it has started, killed and reaped with this object.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    kill(-pid_, SIGKILL);
    reap(0);
  }

  /// Waits for its end, and returns true if it was a good one. Call it at the end of its output.
  bool ended_well() {
    constexpr auto until_last_breath = std::chrono::seconds(1);
    constexpr auto between = std::chrono::milliseconds(1);
    for (const auto deadline = Deadline::in(until_last_breath); !deadline.passed();) {
      if (reap(WNOHANG)) return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
      std::this_thread::sleep_for(between);
    }
    return false;
  }

 private:
  bool reap(int options) {
    pid_t ended = -1;
    while ((ended = waitpid(pid_, &status_, options)) < 0 && errno == EINTR) {
    }
    if (ended != 0) pid_ = -1;
    return ended != 0;
  }

  pid_t pid_;  // -1: reaped
  int status_ = -1;
};

Result<Process> start(const DrawingProgram& program, const Descriptor& input,
                      const Descriptor& output, const Descriptor& errors) {
  std::string name = program.name, option = program.option;
  char* const words[] = {name.data(), option.empty() ? nullptr : option.data(), nullptr};
  pid_t pid = -1;
  const int error = Spawning(input, output, errors).run(pid, name.c_str(), words);
  if (error == ENOENT) return fail(Code::not_found, program.absence);
  if (error != 0)
    return fail(Code::unavailable,
                fmt::format("could not run '{}': {}", name, std::strerror(error)));
  return Process(pid);
}

/// Waits until there is something to read, or the reason why there will not be.
Result<void> wait_for(const std::string& name, const Descriptor& output, const Descriptor& signals,
                      Deadline deadline) {
  for (;;) {
    std::array fds = {pollfd{output.get(), POLLIN, 0}, pollfd{signals.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(left));
    if (ready == 0)
      return fail(Code::timed_out,
                  fmt::format("{} had not drawn it after {} seconds", name, patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (fds[1].revents != 0)
      return fail(Code::cancelled, fmt::format("interrupted while {} was drawing", name));
    return {};
  }
}

/// All that comes until the other end is closed.
Result<std::string> read_all(const std::string& name, const Descriptor& output) {
  const Descriptor signals(open_signal_descriptor());
  const Deadline deadline = Deadline::in(patience);
  std::string picture;
  std::array<char, 65536> bytes;
  for (;;) {
    if (auto waited = wait_for(name, output, signals, deadline); !waited)
      return fail(std::move(waited.error()));
    const ssize_t count = read(output.get(), bytes.data(), bytes.size());
    if (count == 0) return picture;
    if (count > 0) picture.append(bytes.data(), static_cast<std::size_t>(count));
    if (picture.size() > largest_picture)
      return fail(Code::unsupported, "the picture would be too large");
  }
}

}  // namespace

Result<void> check_installed(const DrawingProgram& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder.empty() ? program.name : folder + "/" + program.name).c_str(), X_OK) == 0)
      return {};
  return fail(Code::not_found, program.absence);
}

Result<std::string> draw(const DrawingProgram& program, const std::string& text) {
  auto input = file_with(text), errors = file_with("");
  if (!input) return fail(std::move(input.error()));
  if (!errors) return fail(std::move(errors.error()));
  auto output = Pipe::make();
  if (!output) return fail(std::move(output.error()));
  auto process = start(program, *input, output->write, *errors);
  if (!process) return fail(std::move(process.error()));
  output->write.close();
  auto picture = read_all(program.name, output->read);
  if (!picture) return picture;
  if (!process->ended_well() || picture->empty())
    return fail(Code::unavailable,
                fmt::format("{} could not draw it: {}", program.name, first_line(*errors)));
  return picture;
}

}  // namespace weft::tool
