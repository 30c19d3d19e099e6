// The device: one process that holds all NICs of a simulated fabric. It serves until those who use
// it are gone, or the process that started it is.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>

#include "folder.hpp"
#include "session.hpp"

namespace weft::efa_sim {
namespace {

using namespace std::chrono_literals;

std::string variable(const char* name, const std::string& otherwise = {}) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == 0 ? otherwise : value;
}

class Server {
 public:
  Server(Device& device, Descriptor listener, Descriptor signals)
      : device_(device), listener_(std::move(listener)), signals_(std::move(signals)) {}

  void run() {
    const Time begin = Clock::now();
    bool used = false, ended = false;
    // A device that nobody comes to use doesn't stay.
    while (!ended && (used ? !sessions_.empty() : Clock::now() < begin + 30s)) {
      const bool moved = device_.fabric.advance(Clock::now());
      idle_ = moved ? 0 : idle_ + 1;
      ended = serve();
      used |= !sessions_.empty();
    }
  }

 private:
  /// Doorbells in shared memory can't be waited for: the longer nothing happens, the less often
  /// they are looked at. (The shim wakes the device; a libfabric that rings doorbells itself
  /// can't.)
  std::chrono::nanoseconds rest() const {
    if (idle_ < 50) return 0us;
    if (device_.fabric.busy()) return 50us;
    return std::min<std::chrono::nanoseconds>(1us * idle_, 1ms);
  }

  /// Answers requests, or waits for a while. Returns whether the device is to end.
  bool serve() {
    const std::chrono::nanoseconds time = rest();
    // With many doorbells rung and no request, looking for requests each time would cost most.
    if (time == 0ns && ++unserved_ % 8 != 0) return false;
    std::vector<pollfd> waited{
        {signals_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {device_.wake.get(), POLLIN, 0}};
    for (const Session& each : sessions_) {
      waited.push_back({each.socket(), POLLIN, 0});
      waited.push_back({each.process_end(), POLLIN, 0});
    }
    device_.seen().asleep.store(time > 0ns ? 1 : 0);
    const timespec limit{0, static_cast<long>(time.count())};
    const int ready = ppoll(waited.data(), waited.size(), &limit, nullptr);
    device_.seen().asleep.store(0);
    if (ready <= 0) return false;
    idle_ = 0;
    if (waited[0].revents != 0) return true;
    std::uint64_t count;
    if (waited[2].revents != 0 && read(device_.wake.get(), &count, sizeof count) < 0) return true;
    auto each = sessions_.begin();
    for (std::size_t i = 3; i < waited.size(); i += 2) {
      const bool gone = waited[i + 1].revents != 0;
      const bool goes_on = !gone && (waited[i].revents == 0 || each->answer());
      each = goes_on ? std::next(each) : sessions_.erase(each);
    }
    if (waited[1].revents != 0) accept_session();
    return false;
  }

  void accept_session() {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ucred peer{};
    socklen_t size = sizeof peer;
    if (socket && getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
      sessions_.emplace_back(device_, std::move(socket), peer.pid);
  }

  Device& device_;
  Descriptor listener_, signals_;
  std::list<Session> sessions_;
  unsigned idle_ = 0;
  unsigned unserved_ = 0;
};

Descriptor watch_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, each);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  return Descriptor(signalfd(-1, &ends, SFD_CLOEXEC));
}

int run() {
  Descriptor signals = watch_signals();
  // The pipe of completion events may lead to a process that was killed a moment ago.
  signal(SIGPIPE, SIG_IGN);
  // Ends with the process that started it; a signal instead of SIGKILL, so that it clears up.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto nics = parse_nics(variable("WEFT_EFA_NICS", nics_text(4)));
  const Folder folder(nics);
  Device device(nics, std::stoull(variable("WEFT_EFA_SEED", "1")), variable("WEFT_EFA_FAULTS"),
                folder.path().string());
  device.hosts = static_cast<std::uint32_t>(std::stoul(variable("WEFT_EFA_HOSTS", "0")));
  Descriptor listener = listen_at(folder.socket().c_str());
  if (!signals || !device.wake || !listener) {
    std::perror("weft-efa-device");
    return 1;
  }
  // Whoever started the device waits for this line.
  fmt::print("{}\n", folder.socket().string());
  std::fflush(stdout);
  Server(device, std::move(listener), std::move(signals)).run();
  return 0;
}

}  // namespace
}  // namespace weft::efa_sim

int main() {
  try {
    return weft::efa_sim::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-efa-device: {}\n", error.what());
    return 2;
  }
}
