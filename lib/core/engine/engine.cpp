// The public Engine: each call checks that the engine can be used, then forwards to a service.
#include <tuple>
#include <weft/engine.hpp>

#include "base/system_error.hpp"
#include "config/config_check.hpp"
#include "engine/engine_state.hpp"
#include "providers/provider.hpp"
#include "rail/discovery.hpp"
#include "rail/hooks.hpp"

namespace weft {
namespace {

// A destructor may take this long.
constexpr auto destructor_time = std::chrono::seconds(2);

using core::call;
using core::moved_from;

}  // namespace

Engine::Engine(std::shared_ptr<core::EngineState> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Engine::~Engine() {
  if (!state_) return;
  std::ignore = close(Deadline::in(destructor_time));
  // In a forked child the threads to be joined are not there: everything stays as it is.
  if (state_->gate.forked()) new std::shared_ptr<core::EngineState>(std::move(state_));
}

Result<Engine> Engine::open(const Config& config) {
  return core::open_engine(config, {});
}

Result<void> Engine::close(Deadline deadline) {
  if (!state_) return fail(moved_from());
  return state_->close(deadline);
}

const std::string& Engine::name() const noexcept {
  return state_->self.name;
}
const std::string& Engine::address() const noexcept {
  return state_->self.address;
}
Info Engine::info() const {
  return state_->telemetry.info();
}
std::vector<NicCounters> Engine::nic_counters() const {
  return state_->telemetry.nic_counters();
}
int Engine::event_fd() const noexcept {
  return state_->events.fd();
}
int Engine::accept_fd() const noexcept {
  return state_->peer_table.arrivals_fd();
}
std::size_t Engine::poll(std::span<Event> events) {
  return state_->events.poll(events);
}

Result<std::size_t> Engine::progress() {
  return call(state_,
              [&]() -> Result<std::size_t> { return state_->workers.progress(Clock::now()); });
}

Result<Peer> Engine::connect(std::string_view address, Deadline deadline) {
  return call(state_, [&] { return state_->peers.connect(address, deadline); })
      .map([&](auto&& peer) { return Peer(std::move(peer), state_); });
}

Result<Peer> Engine::keep_connected(std::string_view address, Deadline deadline) {
  return call(state_, [&] { return state_->peers.connect(address, deadline, true); })
      .map([&](auto&& peer) { return Peer(std::move(peer), state_); });
}

Result<Peer> Engine::peer(std::string_view name, Deadline deadline) {
  return call(state_, [&] { return state_->peers.wait_for(name, deadline); }).map([&](auto&& peer) {
    return Peer(std::move(peer), state_);
  });
}

Result<Peer> Engine::accept(Deadline deadline) {
  return call(state_, [&] { return state_->peers.accept(deadline); }).map([&](auto&& peer) {
    return Peer(std::move(peer), state_);
  });
}

std::vector<Peer> Engine::peers() const {
  std::vector<Peer> peers;
  for (auto& peer : state_->peer_table.all_up()) peers.push_back(Peer(std::move(peer), state_));
  return peers;
}

Result<void> Engine::reopen(std::string_view rail, Deadline deadline) {
  return call(state_, [&] { return state_->reopening.reopen(rail, deadline); });
}

Result<Segment> Engine::add(const Memory& memory) {
  return call(state_, [&] { return state_->segments.add(memory); }).map([](auto&& segment) {
    return Segment(std::move(segment));
  });
}

Result<Remote> Engine::import(Bytes blob, std::optional<Deadline> deadline) {
  return call(state_,
              [&] {
                return state_->imports.import(
                    blob, deadline.value_or(Deadline::in(state_->config.default_timeout)));
              })
      .map([](auto&& remote) { return Remote(std::move(remote)); });
}

Result<void> Engine::publish(std::string_view name, const Grant& grant) {
  if (!grant.state_) return fail(moved_from());
  return call(state_, [&] { return state_->grants.publish(name, grant.state_); });
}

Result<Segment> Engine::share(const Memory& memory, std::string_view name, Rights rights) {
  auto segment = add(memory);
  if (!segment) return segment;
  const auto published =
      segment->grant({}, rights).and_then([&](const Grant& grant) { return publish(name, grant); });
  if (!published) return fail(published.error());
  return segment;
}

Result<Remote> Engine::fetch(std::string_view address, std::string_view name, Deadline deadline) {
  return connect(address, deadline).and_then([&](Peer&& peer) {
    return peer.lookup(name, deadline);
  });
}

Result<Prepared> Engine::prepare(const Segment& local, const Remote& remote, Direction direction,
                                 core::PieceList&& pieces) {
  if (!local.state_) return fail(moved_from());
  return call(state_,
              [&] {
                return state_->transfers.prepare(local.state_, remote.state_, direction,
                                                 std::move(pieces));
              })
      .map([](auto&& prepared) { return Prepared(std::move(prepared)); });
}

Result<Prepared> Engine::prepare(const Segment& local, const Remote& remote, Direction direction,
                                 std::span<const Pair> pairs) {
  return prepare(local, remote, direction, core::PieceList(pairs));
}

Result<Prepared> Engine::prepare(const Segment& local, const Remote& remote, Direction direction,
                                 const Strided& pieces) {
  return core::check_form(pieces).and_then(
      [&] { return prepare(local, remote, direction, core::PieceList(pieces)); });
}

Result<Prepared> Engine::prepare(const Segment& local, const Remote& remote, Direction direction,
                                 const Paged& pieces) {
  return core::check_form(pieces).and_then(
      [&] { return prepare(local, remote, direction, core::PieceList(pieces)); });
}

Result<Transfer> Engine::submit(const Prepared& prepared, std::span<const std::uint32_t> picks,
                                TransferOptions options) {
  return call(state_,
              [&] { return state_->transfers.submit(prepared.state_, picks, std::move(options)); })
      .map([](auto&& transfer) { return Transfer(std::move(transfer)); });
}

Result<Transfer> Engine::submit(const Prepared& prepared, TransferOptions options) {
  return call(state_,
              [&] {
                return state_->transfers.submit(prepared.state_, std::nullopt, std::move(options));
              })
      .map([](auto&& transfer) { return Transfer(std::move(transfer)); });
}

Result<Transfer> Engine::start(const Segment& local, const Remote& remote, Direction direction,
                               std::span<const Pair> pairs, TransferOptions&& options) {
  if (!local.state_) return fail(moved_from());
  return call(state_,
              [&] {
                return state_->transfers.submit(local.state_, remote.state_, direction,
                                                core::PieceList(pairs), std::move(options));
              })
      .map([](auto&& transfer) { return Transfer(std::move(transfer)); });
}

Result<Transfer> Engine::write(const Segment& local, const Remote& remote,
                               std::span<const Pair> pairs, TransferOptions options) {
  return start(local, remote, Direction::write, pairs, std::move(options));
}

Result<Transfer> Engine::read(const Segment& local, const Remote& remote,
                              std::span<const Pair> pairs, TransferOptions options) {
  return start(local, remote, Direction::read, pairs, std::move(options));
}

Result<Transfer> Engine::warm(const Segment& local, const Remote& remote, TransferOptions options) {
  if (!local.state_) return fail(moved_from());
  return call(state_,
              [&] {
                return state_->transfers.contact(local.state_, remote.state_, std::move(options));
              })
      .map([](auto&& transfer) { return Transfer(std::move(transfer)); });
}

Result<Path> Engine::explain(const Segment& local, const Remote& remote, Direction direction,
                             const TransferOptions& options) const {
  if (!local.state_) return fail(moved_from());
  return call(state_, [&] {
    return state_->paths.explain(*local.state_, *remote.state_, direction, options);
  });
}

Result<std::string> Engine::metrics_text() const {
  return call(state_, [&] { return state_->telemetry.metrics_text(); });
}

Result<std::string> Engine::snapshot() const {
  return call(state_, [&] { return state_->telemetry.snapshot(); });
}

Result<std::vector<SlowTransfer>> Engine::slowest_transfers() const {
  return call(state_, [&] { return state_->telemetry.slowest_transfers(); });
}

const std::string& Engine::metrics_address() const noexcept {
  return state_->telemetry.address();
}

Result<std::vector<Candidate>> discover(const Config& config) {
  return core::discover_before_opening(config).map(
      [](core::Discovery&& discovery) { return std::move(discovery.found.candidates); });
}

Result<Topology> machine_topology(const Config& config) {
  return core::discover_before_opening(config).map([](core::Discovery&& discovery) {
    return core::with_candidates(discovery.here.topology(), discovery.found.candidates);
  });
}

namespace core {

Result<Engine> open_engine(const Config& config, const EngineHooks& hooks) {
  return caught([&] { return EngineState::open(config, hooks); }).map([](auto&& state) {
    return Engine(std::move(state));
  });
}

}  // namespace core
}  // namespace weft
