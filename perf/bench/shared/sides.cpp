#include "shared/sides.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::perf {

Pipe::Pipe() {
  if (::pipe2(fds.data(), 0) != 0) fds = {-1, -1};
}

void Pipe::close_end(std::size_t end) {
  if (fds[end] >= 0) ::close(fds[end]);
  fds[end] = -1;
}

Result<std::string> read_line(int fd, Deadline deadline) {
  pollfd waited{fd, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
  std::array<char, 4096> text;
  const ssize_t length = ::poll(&waited, 1, static_cast<int>(left.count())) == 1
                             ? ::read(fd, text.data(), text.size())
                             : -1;
  if (length <= 0) return fail(Code::timed_out, "a side of the benchmark did not answer");
  std::string line(text.data(), static_cast<std::size_t>(length));
  if (line.starts_with("error ")) return fail(Code::internal, std::move(line));
  return line;
}

void write_line(int fd, std::string_view line) {
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

void wait_for_end(int fd) {
  std::array<char, 1> none;
  [[maybe_unused]] const ssize_t ended = ::read(fd, none.data(), none.size());
}

Side::Side(const std::function<void()>& body) : pid_(::fork()) {
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  ::_exit(0);
}

Side::~Side() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace weft::perf
