// Control planes under test, what their handlers saw, and raw sockets that play the other side.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/plane.hpp"
#include "control/preamble.hpp"
#include "control/tuning.hpp"
#include "wire/control_codec.hpp"

namespace weft::core::test {

using namespace std::chrono_literals;

/// Long enough for anything that has to happen, on any loaded machine.
inline Deadline soon() {
  return Deadline::in(30s);
}

struct Event {
  enum Kind { meet, up, received, changed, down } kind;
  LinkId link = 0;
  Introduction self = {}, peer = {};
  Nearness near = {};
  Notice notice = {};
  std::optional<Error> why = {};
  LinkEnd how = LinkEnd::disconnected;
  weft::Health health = weft::Health::up;
};

using Met = Result<std::vector<RailOut>>;

/// Writes down all calls, and checks their order per link.
class Recorder : public ControlHandler {
 public:
  Met meet(LinkId link, const Introduction& self, const Introduction& peer,
           const Nearness& near) override;
  void up(LinkId link, bool incoming) override;
  void received(LinkId link, Notice notice) override;
  void health(LinkId link, Health health) override;
  void down(LinkId link, LinkEnd how, const Error& why) override;

  /// Waits for the `nth` event of a kind (from 0); nothing if it does not come.
  std::optional<Event> wait(Event::Kind kind, std::size_t nth = 0, Deadline deadline = soon());
  std::vector<Event> events() const;
  std::size_t count(Event::Kind kind) const;
  /// Fails the test unless every link that met went down, and only those.
  void expect_all_down() const;

  /// What meet() does before it is written down, which is only done where it leaves no rail out.
  using OnMeet = std::function<Met(const Introduction& peer)>;
  void on_meet(OnMeet action);

 private:
  void add(Event event);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  OnMeet on_meet_;
};

Introduction introduce(std::string name, std::uint64_t incarnation = 1);
ControlConfig quick(std::string listen = "127.0.0.1:0");

/// A control plane with its recorder.
struct Engine {
  explicit Engine(std::string name, std::uint64_t incarnation = 1, ControlConfig config = quick(),
                  ControlTuning tuning = {});
  explicit Engine(Introduction self, ControlConfig config = quick(), ControlTuning tuning = {});
  ~Engine();
  Result<LinkId> connect(const Engine& other) { return connect(other.plane->address()); }
  Result<LinkId> connect(const std::string& address) { return plane->connect(address, soon()); }
  std::vector<Error> troubles() const;
  /// Waits for a trouble whose sentence contains `part`.
  bool wait_for_trouble(std::string_view part);
  /// How connections came to nothing, in their order.
  std::vector<LinkEnd> refusals() const;

  std::unique_ptr<Recorder> recorder = std::make_unique<Recorder>();
  std::shared_ptr<ControlPlane> plane;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Error> troubles_;  // of refused connections too
  std::vector<LinkEnd> refusals_;
};

/// A blocking socket of the other side; every wait ends after some seconds.
class Raw {
 public:
  static Raw connect(const std::string& address);
  /// Listens on a loopback port.
  static Raw listen();
  Raw(Raw&& other) noexcept;
  ~Raw();

  Raw accept();
  std::string address() const;
  /// False when the other side has closed.
  bool send(Bytes bytes);
  bool send(std::string_view text);
  bool send(const ControlMessage& message);
  /// Up to `most` bytes; empty when closed.
  Blob receive(std::size_t most = 65536);
  Blob receive_all();
  std::optional<ControlMessage> receive_message();
  /// Messages of other kinds are skipped.
  template <typename Kind>
  std::optional<Kind> receive_kind() {
    while (std::optional<ControlMessage> message = receive_message())
      if (auto* kind = std::get_if<Kind>(&*message)) return std::move(*kind);
    return std::nullopt;
  }
  /// Closes at once, which tells the other side of a reset instead of an end.
  void reset();
  void send_preamble(VersionRange versions = spoken_versions);
  std::optional<VersionRange> receive_preamble();
  /// Plays the dialling side until both sides are ready, as an engine of another host.
  Introduction meet(const Introduction& self);
  /// The same until it is to say that it is ready.
  Introduction introduce_to(const Introduction& self);

 private:
  explicit Raw(int descriptor) : descriptor_(descriptor) {}
  bool receive_exactly(std::byte* to, std::size_t bytes);
  int descriptor_;
};

bool has_ipv6();

}  // namespace weft::core::test
