#include "raw/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "raw/side.hpp"

namespace weft::perf {
namespace {

using Json = nlohmann::json;

constexpr const char* side_argument = "weft-raw-side";
// Where a side finds the socket of its caller: high enough not to collide with those that are
// copied there.
constexpr int caller_fd = 200;
/// Of a message between the two: 16 endpoints' addresses, keys and bases.
constexpr std::size_t longest_message = 1 << 17;

std::runtime_error system_error(const char* call) {
  return std::runtime_error(fmt::format("{}: {}", call, std::strerror(errno)));
}

struct TimedOut : std::runtime_error {
  TimedOut() : std::runtime_error("it did not answer in time") {}
};
struct EndedEarly : std::runtime_error {
  EndedEarly() : std::runtime_error("it ended early") {}
};

void send(int fd, const Json& message) {
  const std::string text = message.dump();
  if (text.size() > longest_message)
    throw std::runtime_error("what the other side told of itself is too long");
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0) return;
  if (errno == EPIPE || errno == ECONNRESET) throw EndedEarly();
  throw system_error("send");
}

void wait_for(int fd, Deadline deadline) {
  pollfd descriptor{fd, POLLIN, 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    ready = ::poll(&descriptor, 1, int(left.count()));
  } while (ready < 0 && errno == EINTR && !deadline.passed());
  if (ready < 0) throw system_error("poll");
  if (ready == 0) throw TimedOut();
}

Json receive(int fd, Deadline deadline) {
  wait_for(fd, deadline);
  std::string text(longest_message, '\0');
  ssize_t length = ::recv(fd, text.data(), text.size(), 0);
  // It has ended without reading everything; its last words come behind that.
  if (length < 0 && errno == ECONNRESET) length = ::recv(fd, text.data(), text.size(), 0);
  if (length < 0) throw system_error("recv");
  if (length == 0) throw EndedEarly();
  return Json::parse(text.substr(0, std::size_t(length)));
}

/// By the signal that libfabric's shm takes, to remove what it has under /dev/shm. The caller may
/// have blocked it.
void end_with_caller() {
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/// Debian's libfabric loads a library for Omni-Path NICs whose handlers call exit(), which waits
/// for itself for ever where another signal, or an exit, is under way: a side would outlive its
/// caller. It reads this when it is loaded.
std::vector<char*> environment_of_side() {
  static char without_handlers[] = "IPATH_NO_BACKTRACE=1";
  std::vector<char*> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) all.push_back(*each);
  all.push_back(without_handlers);
  all.push_back(nullptr);
  return all;
}

/// Under valgrind /proc/self/exe is valgrind's, but not what it is a link to.
std::string own_path() {
  std::error_code failed;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "/proc/self/exe" : path.string();
}

/// Of the loop: the time that it is measured, a fifth of that before, and a stall in either.
Deadline end_of_loop(const RawConfig& config) {
  return Deadline::in(std::chrono::milliseconds(2 * config.max_ms + 3 * config.timeout_ms));
}

void set_environment(const RawConfig& config) {
  // A NIC is to be compared with, and libfabric would leave it alone between processes of a host.
  ::setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 1);
  for (const auto& [name, value] : config.environment) ::setenv(name.c_str(), value.c_str(), 1);
}

void take_steps(RawSide& side, const RawConfig& config, bool initiator) {
  const auto step = std::chrono::milliseconds(config.timeout_ms);
  send(caller_fd, side.describe());
  side.connect(receive(caller_fd, Deadline::in(step)));
  send(caller_fd, "connected");
  if (initiator) {
    receive(caller_fd, Deadline::in(step));
    return send(caller_fd, side.initiate());
  }
  const Deadline deadline = end_of_loop(config);
  send(caller_fd, side.serve([&] { return receive(caller_fd, deadline).get<std::size_t>(); },
                             [] { ::shutdown(caller_fd, SHUT_RD); }));
}

/// What the process does, step by step as RawProcess asks it to. The caller is told of a failure
/// before anything is closed, which may take long, or never end.
void serve_side(const RawConfig& config, bool initiator) {
  set_environment(config);
  std::optional<RawSide> side;
  try {
    side.emplace(config, initiator);
    take_steps(*side, config, initiator);
  } catch (const std::exception& error) {
    send(caller_fd, {{"error", error.what()}});
    std::_Exit(1);
  }
}

}  // namespace

class RawProcess::Child {
 public:
  Child(const RawConfig& config, Role role) : role_(role), config_(config) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw system_error("socketpair");
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], caller_fd);
    const std::string text = Json(config).dump();
    const char* const side = role == Role::initiator ? "initiator" : "target";
    const std::array<const char*, 5> arguments{"weft-raw", side_argument, side, text.c_str(),
                                               nullptr};
    const int rc =
        ::posix_spawn(&pid_, own_path().c_str(), &actions, nullptr,
                      const_cast<char* const*>(arguments.data()), environment_of_side().data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (rc == 0) return;
    ::close(socket_);
    throw std::runtime_error(fmt::format("posix_spawn: {}", std::strerror(rc)));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (finished_) wait_for_end();
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(socket_);
    for (unsigned i = 0; i < max_endpoints; ++i) ::shm_unlink(shm_name(pid_, i).c_str());
  }

  void tell(const Json& message) const { send(socket_, message); }
  /// The side gives up at the deadline by itself; a little later it is given up.
  Json hear(Deadline deadline) const {
    return receive(socket_, Deadline::at(deadline.when() + grace));
  }
  void give_up() const { ::shutdown(socket_, SHUT_RDWR); }
  /// It has answered what was asked for last.
  void finish() { finished_ = true; }

  Role role() const { return role_; }
  const RawConfig& config() const { return config_; }

 private:
  static constexpr auto grace = std::chrono::seconds(2);

  /// It closes what it has, and with it what libfabric keeps under /dev/shm.
  void wait_for_end() const {
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    if (process < 0) return;
    try {
      wait_for(process, Deadline::in(grace));
    } catch (const std::exception&) {  // It takes too long.
    }
    ::close(process);
  }

  const Role role_;
  const RawConfig config_;
  bool finished_ = false;
  int socket_ = -1;
  pid_t pid_ = 0;
};

RawProcess::RawProcess(std::unique_ptr<Child> child) : child_(std::move(child)) {}
RawProcess::~RawProcess() = default;

Result<std::unique_ptr<RawProcess>> RawProcess::start(const RawConfig& config, Role role) {
  if (auto checked = check(config); !checked) return fail(std::move(checked.error()));
  try {
    return std::unique_ptr<RawProcess>(new RawProcess(std::make_unique<Child>(config, role)));
  } catch (const std::exception& error) {
    return fail(Code::fabric_failed, error.what());
  }
}

Result<Json> RawProcess::hear(Deadline deadline) {
  const auto failed = [&](Code code, const std::string& why) {
    const char* const side = child_->role() == Role::initiator ? "initiator" : "target";
    return fail(code, fmt::format("the plain loop's {}: {}", side, why));
  };
  try {
    Json answer = child_->hear(deadline);
    if (!answer.is_object() || !answer.contains("error")) return answer;
    return failed(Code::fabric_failed, answer.at("error").get<std::string>());
  } catch (const TimedOut& error) {
    return failed(Code::timed_out, error.what());
  } catch (const std::exception& error) {
    return failed(Code::fabric_failed, error.what());
  }
}

/// A side that has failed is not listening any more, but has said why.
Result<Json> RawProcess::ask(const Json& message, Deadline deadline) {
  try {
    child_->tell(message);
  } catch (const EndedEarly&) {
  } catch (const std::exception& error) {
    return fail(Code::fabric_failed, error.what());
  }
  return hear(deadline);
}

Deadline RawProcess::step() const {
  return Deadline::in(std::chrono::milliseconds(child_->config().timeout_ms));
}

Result<Json> RawProcess::open() {
  return hear(step());
}

Result<void> RawProcess::connect(const Json& other) {
  return ask(other, step()).map([](const Json&) {});
}

Result<RawResult> RawProcess::run() {
  return ask("run", end_of_loop(child_->config())).map([&](const Json& result) {
    child_->finish();
    return result.get<RawResult>();
  });
}

Result<double> RawProcess::end(std::uint64_t covered) {
  return ask(covered, step()).map([&](const Json& seconds) {
    child_->finish();
    return seconds.get<double>();
  });
}

void RawProcess::give_up() const {
  child_->give_up();
}

std::optional<int> serve_raw_side(int argc, char** argv) {
  if (argc != 4 || std::strcmp(argv[1], side_argument) != 0) return std::nullopt;
  end_with_caller();
  try {
    serve_side(Json::parse(argv[3]).get<RawConfig>(), std::strcmp(argv[2], "initiator") == 0);
    return 0;
  } catch (const std::exception&) {  // The caller is gone.
    return 1;
  }
}

}  // namespace weft::perf
