// All that a connection gets, from its first byte on: TLS, preamble, frames. The first byte of the
// input says whether this side dials or accepts, and what credentials it has. The connection is an
// engine's own, over a pair of sockets instead of a network.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "control/attempt.hpp"
#include "control/connection.hpp"
#include "control/plane.hpp"
#include "guards.hpp"
#include "target.hpp"

namespace {

using namespace weft;
using namespace weft::core;

constexpr auto patience = std::chrono::seconds(60);

class Accepting final : public ControlHandler {
 public:
  Result<std::vector<RailOut>> meet(LinkId, const Introduction&, const Introduction&,
                                    const Nearness&) override {
    return {};
  }
  void up(LinkId, bool) override {}
  void received(LinkId, Notice) override {}
  void health(LinkId, Health) override {}
  void down(LinkId, LinkEnd, const Error&) override {}
};

/// One for each kind of credentials, without a listener.
class Engines {
 public:
  Engines() {
    for (std::uint8_t guard = 0; guard < fuzz::guards; ++guard) open(guards_.of(guard));
  }
  ~Engines() {
    for (const auto& plane : planes_) (void)plane->stop(Deadline::in(patience));
  }
  ControlPlane& of(std::uint8_t guard) { return *planes_[guard % fuzz::guards]; }

 private:
  void open(CredentialFiles credentials) {
    ControlConfig config;
    config.heartbeat = patience;
    config.death_after = 2 * patience;
    config.handshake_time = patience;
    config.credentials = std::move(credentials);
    Introduction self;
    self.name = "m";  // may be the greater one or the smaller
    self.incarnation = 1;
    auto started = ControlPlane::start(config, self, handler_);
    fuzz::require(started.has_value(), "no control plane can be opened");
    planes_.push_back(std::move(*started));
  }

  const fuzz::Guards guards_;
  Accepting handler_;
  std::vector<std::shared_ptr<ControlPlane>> planes_;
};

/// The connection, which lives until its socket is closed.
void start(ControlPlane& plane, int descriptor, bool dials) {
  asio::post(plane.context(), [&plane, descriptor, dials] {
    static std::atomic<LinkId> last = 0;  // each engine has a thread of its own
    asio::ip::tcp::socket socket(plane.context());
    socket.assign(asio::ip::tcp::v4(), descriptor);
    const AttemptPtr attempt =
        dials ? std::make_shared<Attempt>("127.0.0.1:1", Deadline::in(patience)) : nullptr;
    std::make_shared<Connection>(plane, ++last, std::move(socket), attempt)->start();
  });
}

void send_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  shutdown(descriptor, SHUT_WR);
}

/// Until the connection closes, which it has to do, since nothing more comes.
void receive_all(int descriptor) {
  std::array<std::byte, 4096> chunk;
  while (recv(descriptor, chunk.data(), chunk.size(), 0) > 0) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Engines engines;
  if (size == 0) return 0;
  const bool dials = (data[0] & 0x80) != 0;
  const Bytes input = fuzz::bytes_of(data + 1, size - 1);
  int ends[2];
  fuzz::require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
  start(engines.of(data[0] & 0x7f), ends[0], dials);
  std::thread reader([&] { receive_all(ends[1]); });
  send_all(ends[1], input);
  reader.join();
  close(ends[1]);
  return 0;
}
