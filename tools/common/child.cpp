#include "common/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weft::tool {
namespace {

/// Between fork and exec: only what is allowed there. The signals that the parent has blocked stay
/// so, until the child reads them itself.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         int output, int inherited, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
  if (dup2(output, STDOUT_FILENO) >= 0) execve(program, arguments, environment);
  _exit(127);
}

/// Under valgrind /proc/self/exe is valgrind's, but not what it is a link to.
std::string own_path() {
  std::error_code failed;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed || access(path.c_str(), X_OK) != 0 ? "/proc/self/exe" : path.string();
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  close();
}

void Descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Pipe> Pipe::make() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(Code::unavailable, fmt::format("no pipe to be had: {}", std::strerror(errno)));
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

Result<Child> Child::start(std::string name, const std::vector<std::string>& arguments,
                           const Descriptor& inherited, std::string setting) {
  auto output = Pipe::make();
  if (!output) return fail(std::move(output.error()));
  std::vector<std::string> words = {"weft"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<char*> environment;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    environment.push_back(*each);
  if (!setting.empty()) environment.push_back(setting.data());
  environment.push_back(nullptr);
  const std::string program = own_path();

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    return fail(Code::unavailable, fmt::format("no process to be had: {}", std::strerror(errno)));
  if (pid == 0)
    become(program.c_str(), pointers.data(), environment.data(), output->write.get(),
           inherited.get(), parent);
  return Child(std::move(name), pid, std::move(output->read));
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      status_(other.status_) {}

Child::~Child() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  reap();
}

void Child::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

int Child::reap() {
  while (pid_ > 0 && waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status_;
}

}  // namespace weft::tool
