#include "raw_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "side.hpp"

namespace weft::perf {
namespace {

using Json = nlohmann::json;

constexpr const char* side_argument = "weft-raw-side";
// Where a side finds the socket of its caller: high enough not to collide with those that are
// copied there.
constexpr int caller_fd = 200;
/// Of a message between the two: 16 endpoints' addresses, keys and bases.
constexpr std::size_t longest_message = 1 << 17;

constexpr const char* ended_early = "it ended early";

std::runtime_error system_error(const char* call) {
  return std::runtime_error(fmt::format("{}: {}", call, std::strerror(errno)));
}

struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void send(int fd, const Json& message) {
  const std::string text = message.dump();
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0) return;
  throw errno == EPIPE ? std::runtime_error(ended_early) : system_error("send");
}

void wait_for(int fd, Deadline deadline) {
  pollfd descriptor{fd, POLLIN, 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    ready = ::poll(&descriptor, 1, int(left.count()));
  } while (ready < 0 && errno == EINTR && !deadline.passed());
  if (ready < 0) throw system_error("poll");
  if (ready == 0) throw TimedOut("it did not answer in time");
}

Json receive(int fd, Deadline deadline) {
  wait_for(fd, deadline);
  std::string text(longest_message, '\0');
  const ssize_t length = ::recv(fd, text.data(), text.size(), 0);
  if (length < 0 && errno != ECONNRESET) throw system_error("recv");
  if (length <= 0) throw std::runtime_error(ended_early);
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

/// What the process does, step by step as RawProcess asks it to.
void serve_side(const RawConfig& config, bool initiator) {
  for (const auto& [name, value] : config.environment) ::setenv(name.c_str(), value.c_str(), 1);
  RawSide side(config, initiator);
  send(caller_fd, side.describe());
  side.connect(receive(caller_fd, side.deadline()));
  send(caller_fd, "connected");
  const auto next = [&] { return receive(caller_fd, side.deadline()); };
  if (initiator)
    next(), send(caller_fd, side.initiate());
  else
    send(caller_fd, side.serve([&] { return next().get<std::size_t>(); }));
}

}  // namespace

class RawProcess::Child {
 public:
  Child(const RawConfig& config, Role role)
      : deadline_(Deadline::in(std::chrono::milliseconds(config.timeout_ms + 2'000))) {
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
    const int rc = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                                 const_cast<char* const*>(arguments.data()), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (rc == 0) return;
    ::close(socket_);
    throw std::runtime_error(fmt::format("posix_spawn: {}", std::strerror(rc)));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(socket_);
    for (unsigned i = 0; i < max_endpoints; ++i) ::shm_unlink(shm_name(pid_, i).c_str());
  }

  void tell(const Json& message) const { send(socket_, message); }
  Json hear() const { return receive(socket_, deadline_); }
  void give_up() const { ::shutdown(socket_, SHUT_RDWR); }

 private:
  const Deadline deadline_;  // The side gives up at the timeout; a little later it is given up.
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

Result<Json> RawProcess::hear() {
  try {
    Json answer = child_->hear();
    if (!answer.is_object() || !answer.contains("error")) return answer;
    return fail(Code::fabric_failed, answer.at("error").get<std::string>());
  } catch (const TimedOut& error) {
    return fail(Code::timed_out, error.what());
  } catch (const std::exception& error) {
    return fail(Code::fabric_failed, error.what());
  }
}

/// A side that has failed is not listening any more, but has said why.
Result<Json> RawProcess::tell(const Json& message) {
  try {
    child_->tell(message);
  } catch (const std::exception&) {
  }
  return hear();
}

Result<Json> RawProcess::open() {
  return hear();
}

Result<void> RawProcess::connect(const Json& other) {
  return tell(other).map([](const Json&) {});
}

Result<RawResult> RawProcess::run() {
  return tell("run").map([](const Json& result) { return result.get<RawResult>(); });
}

Result<double> RawProcess::end(std::uint64_t covered) {
  return tell(covered).map([](const Json& seconds) { return seconds.get<double>(); });
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
  } catch (const std::exception& error) {
    try {
      send(caller_fd, {{"error", error.what()}});
    } catch (const std::exception&) {  // The caller is gone.
    }
    return 1;
  }
}

}  // namespace weft::perf
