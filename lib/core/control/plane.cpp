#include "control/plane.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/sync.hpp"
#include "base/system_error.hpp"
#include "base/thread.hpp"
#include "base/turns.hpp"

namespace weft::core {
namespace {

/// Bounds how long stop() may take beyond its deadline: for threads to run to their end.
constexpr std::chrono::milliseconds grace{100};
constexpr std::chrono::seconds destructor_time{1};

Result<void> check(const ControlConfig& config, const Introduction& self) {
  const auto bad = [](const char* why) { return fail(Code::invalid_argument, why); };
  if (config.heartbeat <= Nanoseconds::zero()) return bad("the heartbeat must be above zero");
  if (config.suspect_after > config.death_after)
    return bad("suspect_after must not be longer than death_after");
  if (config.handshake_time <= Nanoseconds::zero() || config.max_strangers == 0)
    return bad("handshake_time and max_strangers must be above zero");
  if (config.listen.empty() && !config.advertise.empty())
    return bad("`advertise` requires `listen`");
  Result<Blob> hello = encode(Hello{self, {}});
  if (!hello) return fail(std::move(hello.error()));
  // The proof and some heartbeats have to fit too.
  if (hello->size() > limits::stranger - 4096)
    return fail(Code::invalid_argument,
                fmt::format("this engine's introduction has {} bytes, more than peers accept: it "
                            "has too many rails ({})",
                            hello->size(), self.rails.size()));
  return {};
}

LinkId next_link_id() {
  static std::atomic<LinkId> last{0};
  return ++last;
}

}  // namespace

ControlPlane::ControlPlane(ControlConfig config, ControlTuning tuning, Introduction self,
                           ControlHandler& handler)
    : config_(std::move(config)),
      tuning_(tuning),
      self_(std::move(self)),
      handler_(handler),
      page_(self_.incarnation) {}

Result<void> ControlPlane::open() {
  if (!config_.credentials.empty()) {
    Result<std::unique_ptr<Credentials>> credentials = Credentials::load(config_.credentials);
    if (!credentials) return fail(std::move(credentials.error()));
    credentials_ = std::move(*credentials);
  }
  if (!config_.listen.empty()) {
    Result<std::unique_ptr<Listener>> listener = Listener::open(io_, config_);
    if (!listener) return fail(std::move(listener.error()));
    listener_ = std::move(*listener);
  }
  auto door = HostDoor::open(io_, config_.host_dir, {.time = config_.handshake_time},
                             [this](const HostQuestion& question) { return answer(question); });
  if (!door) return fail(std::move(door.error()));
  door_ = std::move(*door);
  self_.address = listener_ ? listener_->address() : "";
  if (Result<void> checked = check(config_, self_); !checked) return checked;

  if (listener_)
    listener_->start([this](asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
  if (door_) door_->start();
  start_beating();
  const SignalsBlocked blocked;
  {
    const Lock lock(mutex_);
    threads_ = 2;
  }
  auto control =
      start_thread([self = shared_from_this()] { self->run(self->io_, "weft-control"); });
  if (!control) return fail(std::move(control.error()));
  io_thread_ = std::move(*control);
  auto setup = start_thread([self = shared_from_this()] { self->run(self->setup_, "weft-setup"); });
  if (!setup) {
    io_.stop();
    io_thread_.join();
    return fail(std::move(setup.error()));
  }
  setup_thread_ = std::move(*setup);
  return {};
}

void ControlPlane::run(asio::io_context& context, const char* name) {
  pthread_setname_np(pthread_self(), name);
  take_short_turns();
  context.run();
  const Lock lock(mutex_);
  --threads_;
  changed_.notify_all();
}

// Calls from other threads.

void ControlPlane::send(LinkId link, Notice notice) {
  ConnectionPtr connection;
  {
    const Lock lock(mutex_);
    const auto found = up_.find(link);
    if (found == up_.end()) return;
    connection = found->second;
  }
  Result<Blob> frame = encode(std::move(notice));
  if (!frame) return trouble(frame.error());
  connection->offer(std::move(*frame));
}

void ControlPlane::hang_up(LinkId link, std::string reason, Code code) {
  asio::post(io_, [this, link, reason = std::move(reason), code] {
    const auto found = connections_.find(link);
    if (found == connections_.end()) return;
    const ConnectionPtr connection = found->second;
    const LinkEnd how = code == Code::closed ? LinkEnd::disconnected : LinkEnd::data_path;
    end(connection, how, Error(code, "this engine hung up: " + reason), Goodbye{reason});
  });
}

void ControlPlane::rail_moved(std::uint32_t rail, Blob address) {
  asio::post(io_, [this, rail, address = std::move(address)]() mutable {
    self_.rails[rail].address = std::move(address);
  });
}

void ControlPlane::let_go(std::string name) {
  asio::post(io_, [this, name = std::move(name)] { kept_.erase(name); });
}

void ControlPlane::trouble(const Error& error) const {
  if (config_.on_trouble && !silenced_) config_.on_trouble(error);
}

// Coming and going.

Introduction ControlPlane::introduction() const {
  Introduction self = self_;
  self.token = random_u64();
  if (config_.first_sequence)
    self.token = (self.token & ~std::uint64_t{0xffffffff}) | *config_.first_sequence;
  return self;
}

HostClaim ControlPlane::host_claim(const HostPass& pass) const {
  HostClaim claim = page_.claim();
  claim.boot = boot_id();
  if (!door_) return claim;
  claim.socket = door_->name();
  claim.pass = pass;
  return claim;
}

/// To a peer: it says the pass that only the other side of a connection was told.
Result<Answered> ControlPlane::answer(const HostQuestion& question) const {
  const auto known = std::find_if(connections_.begin(), connections_.end(), [&](const auto& each) {
    const Connection& connection = *each.second;
    return connection.stage != Stage::over && connection.pass == question.pass;
  });
  if (known == connections_.end() || silenced_)
    return fail(Code::permission_denied, "that is the pass of no connection");
  if (question.name.owner != 0) {
    if (!config_.show) return fail(Code::not_found, "there is nothing to show");
    return config_.show(question.name).map([](Descriptor shown) {
      return Answered{{}, std::move(shown)};
    });
  }
  Descriptor process = open_process(getpid());
  if (process.get() < 0) return fail(system_error("pidfd_open"));
  return Answered{page_.nonce(), std::move(process)};
}

std::unique_ptr<Tls> ControlPlane::new_tls(const Attempt* attempt) const {
  if (!credentials_) return nullptr;
  if (attempt == nullptr) return std::make_unique<Tls>(*credentials_, Tls::Role::accepts, "");
  const Result<HostPort> dialled = parse_address(attempt->address);
  return std::make_unique<Tls>(*credentials_, Tls::Role::dials, dialled ? dialled->host : "");
}

ConnectionPtr ControlPlane::add(asio::ip::tcp::socket socket, AttemptPtr attempt) {
  const LinkId id = next_link_id();
  const auto connection =
      std::make_shared<Connection>(*this, id, std::move(socket), std::move(attempt));
  connections_.emplace(id, connection);
  return connection;
}

void ControlPlane::accepted(asio::ip::tcp::socket socket) {
  if (shut_down_) return;
  set_options(socket, config_.death_after);
  while (strangers_.size() >= config_.max_strangers) {
    const ConnectionPtr oldest = strangers_.begin()->second;
    end(oldest, LinkEnd::crowded,
        Error(Code::unavailable,
              fmt::format("{} was turned away: {} connections wait to introduce themselves",
                          oldest->remote(), strangers_.size())),
        std::nullopt);
    oldest->close();
  }
  const ConnectionPtr connection = add(std::move(socket), nullptr);
  strangers_.emplace(connection->id, connection);
  connection->start();
}

void ControlPlane::shut_down() {
  shut_down_ = true;
  if (listener_) listener_->close();
  if (door_) door_->close();
  beat_timer_.cancel();
  kept_.clear();
  for (const auto& [attempt, dialer] : std::exchange(dialers_, {})) dialer->cancel();
  for (const auto& [id, connection] : std::map(connections_))
    end(connection, LinkEnd::disconnected, Error(Code::closed, "this engine is closing"),
        Goodbye{"it was closed"});
  note_if_quiet();
}

void ControlPlane::note_if_quiet() {
  if (!shut_down_ || !connections_.empty() || meets_running_ > 0) return;
  const Lock lock(mutex_);
  quiet_ = true;
  changed_.notify_all();
}

Result<void> ControlPlane::stop(Deadline deadline) {
  const auto until = std::max(deadline.when(), Clock::now() + grace);
  Lock lock(mutex_);
  if (std::exchange(stopping_, true)) return {};
  for (const AttemptPtr& attempt : attempts_)
    attempt->finish(fail(Code::closed, "this engine is closing"));
  asio::post(io_, [this] { shut_down(); });
  changed_.wait(mutex_, Deadline::at(until), [this]() WEFT_REQUIRES(mutex_) { return quiet_; });
  silenced_ = true;
  const bool handler_returned = meets_running_ == 0;
  io_.stop();
  setup_.stop();
  const bool ended = changed_.wait(mutex_, Deadline::at(std::max(until, Clock::now() + grace)),
                                   [this]() WEFT_REQUIRES(mutex_) { return threads_ == 0; });
  lock.unlock();
  for (std::thread* thread : {&io_thread_, &setup_thread_}) {
    if (!thread->joinable()) continue;
    if (ended)
      thread->join();
    else
      thread->detach();
  }
  if (ended && handler_returned) return {};
  return fail(Code::timed_out,
              "the control plane's threads are busy in a call that did not return");
}

Result<std::shared_ptr<ControlPlane>> ControlPlane::start(const ControlConfig& config,
                                                          Introduction self,
                                                          ControlHandler& handler,
                                                          const ControlTuning& tuning) {
  // asio throws where no descriptor is left.
  return caught([&]() -> Result<std::shared_ptr<ControlPlane>> {
    auto plane = std::make_shared<ControlPlane>(config, tuning, std::move(self), handler);
    if (Result<void> opened = plane->open(); !opened) return fail(std::move(opened.error()));
    return std::shared_ptr<ControlPlane>(plane.get(), [plane](ControlPlane* own) {
      (void)own->stop(Deadline::in(destructor_time));
    });
  });
}

}  // namespace weft::core
