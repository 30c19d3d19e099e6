#include "common/outside_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <weft/deadline.hpp>

#include "common/child.hpp"
#include "common/interrupt.hpp"

namespace weft::tool {
namespace {

constexpr std::size_t most_complaints = std::size_t{64} << 10;

/// A file in memory that holds `text`, to be read from its beginning: the program can take it in
/// pieces of any size, at any time, and nobody has to feed it.
Result<Descriptor> file_with(std::string_view text) {
  Descriptor file(memfd_create("weft-program", MFD_CLOEXEC));
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

/// The last bytes of a file.
std::string end_of(const Descriptor& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return "";
  const off_t begin = std::max<off_t>(0, status.st_size - static_cast<off_t>(most_complaints));
  std::string text(static_cast<std::size_t>(status.st_size - begin), '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), begin);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
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
  explicit Process(pid_t pid)
      : pid_(pid), ended_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), ended_(std::move(other.ended_)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    kill(-pid_, SIGKILL);
    reap();
  }

  /// Readable once the process has ended.
  const Descriptor& ended() const { return ended_; }

  /// Waits for its end, which waitpid's status tells.
  int reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;  // -1: reaped
  Descriptor ended_;
};

Result<Process> start(const std::vector<std::string>& words, const Descriptor& input,
                      const Descriptor& output, const Descriptor& errors) {
  std::vector<std::string> own = words;
  std::vector<char*> pointers;
  for (std::string& word : own) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = Spawning(input, output, errors).run(pid, pointers[0], pointers.data());
  if (error == ENOENT)
    return fail(Code::not_found, fmt::format("there is no program '{}'", words[0]));
  if (error != 0)
    return fail(Code::unavailable,
                fmt::format("could not run '{}': {}", words[0], std::strerror(error)));
  return Process(pid);
}

/// A wait for a program, with its deadline.
class Waiting {
 public:
  Waiting(const std::string& name, Nanoseconds patience)
      : name_(name), signals_(open_signal_descriptor()), deadline_(Deadline::in(patience)) {}

  const std::string& name() const { return name_; }

  /// Until there is something to read; false if there is nothing in time.
  Result<bool> until_readable(const Descriptor& descriptor) const {
    for (;;) {
      std::array fds = {pollfd{descriptor.get(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_.left()).count();
      const int ready = poll(fds.data(), fds.size(), static_cast<int>(left));
      if (ready == 0) return false;
      if (ready < 0 && errno == EINTR) continue;
      if (fds[1].revents != 0)
        return fail(Code::cancelled, fmt::format("interrupted while {} was at work", name_));
      return true;
    }
  }

 private:
  const std::string& name_;
  const Descriptor signals_;
  const Deadline deadline_;
};

/// All that comes until the other end is closed, or the time has passed: then false.
Result<bool> read_all(const Waiting& waiting, const Descriptor& output, std::size_t largest,
                      std::string& text) {
  std::array<char, 65536> bytes;
  for (;;) {
    const auto readable = waiting.until_readable(output);
    if (!readable || !*readable) return readable;
    const ssize_t count = read(output.get(), bytes.data(), bytes.size());
    if (count == 0) return true;
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.size() > largest)
      return fail(Code::unsupported,
                  fmt::format("{} has written more than {} bytes", waiting.name(), largest));
  }
}

/// Empty for a good end.
std::string problem_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : fmt::format("ended with exit code {}", code);
}

std::string too_late(Nanoseconds patience) {
  return fmt::format("was not done after {:g} seconds",
                     std::chrono::duration<double>(patience).count());
}

}  // namespace

Result<Ending> run(const OutsideProgram& program) {
  auto input = file_with(program.input), errors = file_with("");
  if (!input) return fail(std::move(input.error()));
  if (!errors) return fail(std::move(errors.error()));
  auto output = Pipe::make();
  if (!output) return fail(std::move(output.error()));
  auto process = start(program.words, *input, output->write, *errors);
  if (!process) return fail(std::move(process.error()));
  output->write.close();

  Ending ending;
  const Waiting waiting(program.words[0], program.patience);
  auto done = read_all(waiting, output->read, program.largest_output, ending.output);
  if (done && *done) done = waiting.until_readable(process->ended());
  if (!done) return fail(std::move(done.error()));
  ending.in_time = *done;
  ending.problem = ending.in_time ? problem_of(process->reap()) : too_late(program.patience);
  ending.complaints = end_of(*errors);
  return ending;
}

}  // namespace weft::tool
