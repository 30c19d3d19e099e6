// Opening and closing an engine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "base/completion_slot.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/system_error.hpp"
#include "base/thread.hpp"
#include "config/config_check.hpp"
#include "config/settings.hpp"
#include "control/plane.hpp"
#include "engine/engine_state.hpp"

namespace weft::core {
namespace {

// Far longer than devices take to copy all bounce buffers.
constexpr auto longest_copies = std::chrono::seconds(2);

// What closing gets even if its deadline has passed: the usual case takes a few milliseconds.
constexpr auto shortest_close = std::chrono::milliseconds(200);

Error closed_error() {
  return Error(Code::closed, "the engine was closed");
}

std::string default_name() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}-{:08x}", host, getpid(), static_cast<std::uint32_t>(random_u64()));
}

/// But for its rails and its address, which are not known yet.
Introduction introduction_of(const Config& config) {
  Introduction self;
  self.name = config.name.empty() ? default_name() : of_this_process(config.name);
  self.incarnation = random_u64();
  self.max_message = static_cast<std::uint32_t>(config.max_message);
  self.message_credits =
      static_cast<std::uint32_t>(Messenger::first_credits(config.message_credits));
  self.bounce_buffers = static_cast<std::uint32_t>(config.bounce_buffers);
  self.bounce_buffer_bytes = config.bounce_buffer_bytes;
  return self;
}

}  // namespace

EngineState::EngineState(const Config& checked, std::vector<Setting> list, const EngineHooks& doors)
    : config(checked), hooks(doors), settings(std::move(list)), self(introduction_of(config)) {}

Result<std::shared_ptr<EngineState>> EngineState::open(const Config& call,
                                                       const EngineHooks& hooks) {
  fill_standard_descriptors();
  auto settings = resolve_settings(call, environment_for(call));
  if (!settings) return fail(std::move(settings.error()));
  for (const std::string& warning : settings->warnings) log(LogLevel::warning, "{}", warning);
  const auto checked = checked_config(*settings);
  if (!checked) return fail(checked.error());
  const std::shared_ptr<EngineState> engine(
      new EngineState(*checked, std::move(settings->list), hooks));
  engine->owner.handle = engine;
  std::optional<AllCores> all_cores;
  if (checked->place_threads) all_cores.emplace();
  if (auto started = caught([&] { return engine->start(); }); !started) {
    engine->control.reset();
    engine->telemetry.stop();
    engine->workers.stop();
    return fail(std::move(started.error()));
  }
  return engine;
}

Result<void> EngineState::start() {
  if (events.fd() < 0 || peer_table.arrivals_fd() < 0)
    return fail(Code::unavailable, "no descriptor left for what happens: " + error_text(EMFILE));
  if (auto opened = rails.open(rail_hooks(), endpoint_decorator(), self); !opened) return opened;
  grants.open();
  if (config.metrics) ledger = std::make_unique<Ledger>(rails.size());
  return workers.start(rails)
      .and_then([&] { return telemetry.start(); })
      .and_then([&] { return start_control(); })
      .and_then([&] { return upkeep.start(); });
}

EndpointDecorator& endpoint_decorator() {
  static EndpointDecorator decorator;
  return decorator;
}

Rail::Hooks EngineState::rail_hooks() {
  Rail::Hooks made;
  made.find_grant = [this](std::uint64_t lease) { return grants.find(lease); };
  made.on_broken = [this](const PeerState& peer, const Error& error) {
    // Its end may be seen here before the control connection tells of it.
    control->hang_up(peer.link, "the data path to the peer ended: " + error.to_string(),
                     Code::peer_down);
  };
  made.tell = [this](const PeerState& peer, Notice notice) {
    control->send(peer.link, std::move(notice));
  };
  made.flush = [this] { return arrivals.flush(); };
  made.decorate = hooks.decorate;
  return made;
}

OwnedGrants::Tell EngineState::lease_notices() {
  return [this](LinkId link, Notice notice) {
    if (!hooks.lose || !hooks.lose(notice)) control->send(link, std::move(notice));
  };
}

Result<void> EngineState::start_control() {
  ControlConfig wanted;
  wanted.listen = config.listen;
  wanted.advertise = config.advertise;
  wanted.allow_unauthenticated_network = config.allow_unauthenticated_network;
  wanted.credentials = credential_files(config);
  wanted.host_dir = config.host_dir;
  wanted.show = [this](const DescriptorName& name) { return rails.show(name); };
  wanted.heartbeat = config.heartbeat;
  wanted.suspect_after = std::min(config.suspect_after, config.death_after);
  wanted.death_after = config.death_after;
  wanted.first_sequence = hooks.first_sequence;
  wanted.progress_alive = [this] { return workers.all_ticked(); };
  wanted.on_refused = [this](LinkEnd how, const Error& error) { peers.refused(how, error); };
  wanted.on_trouble = [](const Error& error) {
    log(LogLevel::info, "control connection: {}", error.to_string());
  };
  auto started = ControlPlane::start(wanted, self, inbound);
  if (!started) return fail(std::move(started.error()));
  control = std::move(*started);
  self.address = control->address();
  return {};
}

Result<void> EngineState::close(Deadline deadline) {
  if (gate.forked()) return fail(forked_error());
  if (!gate.close()) return {};
  telemetry.stop();
  transfers.close();
  peers.flush(deadline);
  peer_table.close();
  workers.end_all(closed_error());
  imports.give_back(nullptr);
  const bool returned = grants.take_back_all_lent(deadline);
  auto stopped = control->stop(deadline);
  peers.reap_all();

  // Closing endpoints may block for ever in some providers, so it runs on a thread of its own;
  // what it works on is kept alive by it alone if it is overdue.
  const auto done = std::make_shared<CompletionSlot>();
  const auto tear_down = [alive = shared_from_this(), done] {
    if (alive->tear_down()) return done->complete(std::nullopt);
    done->complete(Error(Code::quarantined,
                         "a device does not end its copies: what they touch is kept, and must not "
                         "be reused"));
  };
  auto closing = start_thread(tear_down);
  if (!closing) tear_down();
  if (!done->wait(Deadline::at(std::max(deadline.when(), Clock::now() + shortest_close)))) {
    closing->detach();
    return fail(Code::quarantined,
                "a rail did not close in time; it is abandoned with its memory still registered");
  }
  if (closing) closing->join();
  if (const auto& error = done->error()) return fail(*error);
  if (!returned)
    return fail(Code::quarantined,
                "a process still has GPU memory mapped that was lent to it: it must not be reused");
  return stopped;
}

/// False if memory is still being copied.
bool EngineState::tear_down() {
  upkeep.stop();
  gate.wait_empty();
  workers.stop();
  hasher.stop();
  workers.finish(closed_error());
  rails.shut();
  const bool settled = rails.settle(Deadline::in(longest_copies));
  grants.close();
  segments.close();
  rails.clear();
  return settled;
}

}  // namespace weft::core
