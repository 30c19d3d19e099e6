#include "fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "control/address.hpp"

namespace weft::core::test {

// Recorder.

void Recorder::add(Event event) {
  const std::lock_guard lock(mutex_);
  std::optional<Event::Kind> last;
  for (const Event& earlier : events_)
    if (earlier.link == event.link) last = earlier.kind;
  switch (event.kind) {
    case Event::meet:
      EXPECT_TRUE(!last || last == Event::down) << "meet() came twice";
      break;
    case Event::up:
      EXPECT_EQ(last, Event::meet) << "up() without meet()";
      break;
    case Event::received:
    case Event::changed:
      EXPECT_TRUE(last == Event::up || last == Event::received || last == Event::changed)
          << "received() or health() while not up";
      break;
    case Event::down:
      EXPECT_TRUE(last && last != Event::down) << "down() without meet(), or twice";
      break;
  }
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void Recorder::on_meet(OnMeet action) {
  const std::lock_guard lock(mutex_);
  on_meet_ = std::move(action);
}

Met Recorder::meet(LinkId link, const Introduction& self, const Introduction& peer,
                   const Nearness& near) {
  OnMeet action;
  {
    const std::lock_guard lock(mutex_);
    action = on_meet_;
  }
  if (action)
    if (Met met = action(peer); !met || !met->empty()) return met;
  add({.kind = Event::meet, .link = link, .self = self, .peer = peer, .near = near});
  return {};
}
void Recorder::up(LinkId link, bool) {
  add({.kind = Event::up, .link = link});
}
void Recorder::received(LinkId link, Notice notice) {
  add({.kind = Event::received, .link = link, .notice = std::move(notice)});
}
void Recorder::health(LinkId link, Health health) {
  add({.kind = Event::changed, .link = link, .health = health});
}
void Recorder::down(LinkId link, LinkEnd how, const Error& why) {
  add({.kind = Event::down, .link = link, .why = why, .how = how});
}

std::optional<Event> Recorder::wait(Event::Kind kind, std::size_t nth, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::optional<Event> found;
  changed_.wait_until(lock, deadline.when(), [&] {
    std::size_t seen = 0;
    for (const Event& event : events_)
      if (event.kind == kind && seen++ == nth) found = event;
    return found.has_value();
  });
  return found;
}

std::vector<Event> Recorder::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::size_t Recorder::count(Event::Kind kind) const {
  const std::vector<Event> all = events();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const Event& e) { return e.kind == kind; }));
}

void Recorder::expect_all_down() const {
  std::map<LinkId, int> open;
  for (const Event& event : events()) {
    if (event.kind == Event::meet) ++open[event.link];
    if (event.kind == Event::down) --open[event.link];
  }
  for (const auto& [link, meets] : open) EXPECT_EQ(meets, 0) << "link " << link;
}

// Engine.

Introduction introduce(std::string name, std::uint64_t incarnation) {
  Introduction self;
  self.name = std::move(name);
  self.incarnation = incarnation;
  self.rails.push_back(
      {.provider = "tcp", .protocol = 7, .address_format = 1, .address = Blob(16)});
  self.max_message = 8192;
  return self;
}

ControlConfig quick(std::string listen) {
  ControlConfig config;
  config.listen = std::move(listen);
  config.heartbeat = 500ms;
  config.suspect_after = config.death_after =
      20s;  // loaded machines; the tests of death set their own
  return config;
}

Engine::Engine(std::string name, std::uint64_t incarnation, ControlConfig config,
               ControlTuning tuning)
    : Engine(introduce(std::move(name), incarnation), std::move(config), tuning) {}

Engine::Engine(Introduction self, ControlConfig config, ControlTuning tuning) {
  config.on_trouble = [this](const Error& error) {
    const std::lock_guard lock(mutex_);
    troubles_.push_back(error);
    changed_.notify_all();
  };
  config.on_refused = [this](LinkEnd how, const Error& error) {
    const std::lock_guard lock(mutex_);
    refusals_.push_back(how);
    troubles_.push_back(error);
    changed_.notify_all();
  };
  auto started = ControlPlane::start(config, std::move(self), *recorder, tuning);
  EXPECT_TRUE(started) << started.error().message();
  if (started) plane = std::move(*started);
}

Engine::~Engine() {
  if (!plane) return;
  const Result<void> stopped = plane->stop(soon());
  EXPECT_TRUE(stopped) << stopped.error().message();
  recorder->expect_all_down();
}

std::vector<Error> Engine::troubles() const {
  const std::lock_guard lock(mutex_);
  return troubles_;
}

std::vector<LinkEnd> Engine::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

bool Engine::wait_for_trouble(std::string_view part) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, soon().when(), [&] {
    return std::any_of(troubles_.begin(), troubles_.end(), [&](const Error& error) {
      return error.message().find(part) != std::string::npos;
    });
  });
}

// Raw.

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int tcp_socket() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{30, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return descriptor;
}

}  // namespace

Raw Raw::connect(const std::string& address) {
  const sockaddr_in to = loopback(parse_address(address).value().port.value());
  Raw raw(tcp_socket());
  EXPECT_EQ(::connect(raw.descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return raw;
}

Raw Raw::listen() {
  const sockaddr_in at = loopback(0);
  Raw raw(tcp_socket());
  EXPECT_EQ(::bind(raw.descriptor_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(::listen(raw.descriptor_, 8), 0);
  return raw;
}

Raw::Raw(Raw&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
Raw::~Raw() {
  if (descriptor_ >= 0) close(descriptor_);
}

Raw Raw::accept() {
  Raw raw(::accept(descriptor_, nullptr, nullptr));
  const timeval patience{30, 0};
  setsockopt(raw.descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return raw;
}

std::string Raw::address() const {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&at), &size);
  return format_address("127.0.0.1", ntohs(at.sin_port));
}

bool Raw::send(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Raw::send(std::string_view text) {
  return send(std::as_bytes(std::span(text)));
}
bool Raw::send(const ControlMessage& message) {
  return send(Bytes(encode(message).value()));
}

Blob Raw::receive(std::size_t most) {
  Blob bytes(most);
  const ssize_t got = recv(descriptor_, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

Blob Raw::receive_all() {
  Blob all;
  for (Blob part = receive(); !part.empty(); part = receive())
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

bool Raw::receive_exactly(std::byte* to, std::size_t bytes) {
  return bytes == 0 || recv(descriptor_, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

std::optional<ControlMessage> Raw::receive_message() {
  Blob frame(limits::frame_header);
  if (!receive_exactly(frame.data(), frame.size())) return std::nullopt;
  std::uint32_t size = 0;
  std::memcpy(&size, frame.data(), sizeof size);
  frame.resize(limits::frame_header + size);
  if (!receive_exactly(frame.data() + limits::frame_header, size)) return std::nullopt;
  Result<ControlMessage> message = decode(frame);
  if (!message) return std::nullopt;
  return std::move(*message);
}

void Raw::reset() {
  const linger none{1, 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(std::exchange(descriptor_, -1));
}

void Raw::send_preamble(VersionRange versions) {
  send(Bytes(write_preamble(versions)));
}

std::optional<VersionRange> Raw::receive_preamble() {
  Preamble preamble;
  if (!receive_exactly(preamble.data(), preamble.size())) return std::nullopt;
  return read_preamble(preamble);
}

Introduction Raw::meet(const Introduction& self) {
  Introduction other = introduce_to(self);
  send(Ready{});
  EXPECT_TRUE(receive_kind<Ready>());
  return other;
}

Introduction Raw::introduce_to(const Introduction& self) {
  send_preamble();
  EXPECT_TRUE(receive_preamble());
  send(Hello{self, {}});
  const std::optional<Hello> hello = receive_kind<Hello>();
  EXPECT_TRUE(hello);
  send(Proof{.reason = "a raw socket"});
  if (hello && std::tie(self.name, self.incarnation) <
                   std::tie(hello->introduction.name, hello->introduction.incarnation))
    send(Choice{});
  else
    EXPECT_TRUE(receive_kind<Choice>());
  return hello ? hello->introduction : Introduction{};
}

bool has_ipv6() {
  const int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  const bool bound =
      descriptor >= 0 && bind(descriptor, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  if (descriptor >= 0) close(descriptor);
  return bound;
}

}  // namespace weft::core::test
