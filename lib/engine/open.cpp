// Engine: opening and closing.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/callback.hpp"
#include "base/completion_slot.hpp"
#include "base/detached_thread.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "config/config_check.hpp"
#include "config/settings.hpp"
#include "device/device.hpp"
#include "engine/engine_state.hpp"
#include "peer/pairing.hpp"
#include "providers/provider.hpp"
#include "topo/kernel.hpp"
#include "topo/machine.hpp"
#include "topo/nic_counters.hpp"

namespace weft::core {
namespace {

std::string default_name() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}-{:08x}", host, getpid(), static_cast<std::uint32_t>(random_u64()));
}

providers::Wanted wanted_of(const Config& config, const Locality& here) {
  providers::Wanted wanted;
  wanted.providers = config.providers;
  wanted.allowed = config.policy.providers;
  wanted.nics = config.nics;
  wanted.max_nics = config.max_nics * std::max(1U, here.gpus());
  wanted.rail_address = config.rail_address;
  wanted.near_nics = here.near_nics();
  wanted.near_nodes = topo::usable_nodes();
  wanted.allow_emulation = config.allow_emulation;
  // libfabric may start the driver for it, which is nothing to do to a program without GPUs.
  wanted.device_memory = !config.gpus.empty() || device_driver_loaded();
  return wanted;
}

/// Messages must fit a rail, or it can't be used at all.
Result<void> check_message_size(const Config& config, const Capability& record) {
  const std::uint64_t needed = Channel::message_bytes(config.max_message);
  if (needed <= record.max_send) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} {} carries messages of {} bytes at most, and Config::max_message "
                          "needs {}",
                          record.provider, record.domain, record.max_send, needed));
}

// Far longer than devices take to copy all bounce buffers.
constexpr auto longest_copies = std::chrono::seconds(2);

// What closing gets even if its deadline has passed: the usual case takes a few milliseconds.
constexpr auto shortest_close = std::chrono::milliseconds(200);

Error closed_error() {
  return Error(Code::closed, "the engine was closed");
}

RailOptions rail_options(const Config& config) {
  return {.rails = config.rails,
          .chunk_bytes = config.chunk_bytes,
          .window = config.window,
          .caller_drives = config.progress == Progress::manual,
          .cores = topo::usable_cores()};
}

Rail::Settings rail_settings(const Config& config, const Capability& record, bool lists) {
  Rail::Settings settings;
  settings.plan = plan_rails(record, rail_options(config));
  settings.plan.window.patience = config.death_after;  // that the peer is dead is found out before
  settings.messages = {config.max_message, config.message_credits};
  settings.bounce.buffer_bytes =
      std::min<std::size_t>(config.bounce_buffer_bytes, Bounce::payload_bytes(record.max_send));
  settings.bounce.longest_message =
      std::min<std::uint64_t>(record.max_send, Bounce::message_bytes(config.bounce_buffer_bytes));
  settings.bounce.buffers = config.bounce_buffers;
  if (lists) settings.bounce.pieces = Bounce::pieces_of(settings.bounce.buffer_bytes);
  return settings;
}

}  // namespace

EngineState::EngineState(const Config& config, const EngineHooks& hooks)
    : config_(config),
      hooks_(hooks),
      owned_([this](LinkId link, Notice notice) { tell(link, std::move(notice)); },
             [this](std::uint64_t lease) { directory_.withdraw(lease); },
             [this](LinkId link) { return borrower(link); }),
      imported_([this](LinkId link, Notice notice) { tell(link, std::move(notice)); },
                [this](RemoteState& remote, const Error& why) { stop_transfers(remote, why); },
                [this](std::function<void()> task) {
                  run_detached([self = shared_from_this(), task = std::move(task)] { task(); });
                },
                [this] { return config_.share_gpu_memory && has_devices(); }),
      checks_(
          hasher_,
          [this](LinkId link, CheckRequest request) { control_->send(link, std::move(request)); },
          [this](const TransferState& transfer, std::function<void()> task) {
            rails_[transfer.rails().front()]->worker().post(std::move(task));
          }) {}

Result<std::shared_ptr<EngineState>> EngineState::open(const Config& call,
                                                       const EngineHooks& hooks) {
  auto settings = resolve_settings(call, environment_for(call));
  if (!settings) return fail(std::move(settings.error()));
  auto checked = checked_config(settings->config);
  if (!checked) return fail(std::move(checked.error()));
  const Config& config = *checked;
  std::shared_ptr<EngineState> engine(new EngineState(config, hooks));
  engine->settings_ = std::move(settings->list);
  engine->self_.name = config.name.empty() ? default_name() : config.name;
  engine->self_.incarnation = random_u64();
  engine->self_.max_message = static_cast<std::uint32_t>(config.max_message);
  engine->self_.message_credits = static_cast<std::uint32_t>(config.message_credits);
  engine->self_.bounce_buffers = static_cast<std::uint32_t>(config.bounce_buffers);
  engine->self_.bounce_buffer_bytes = config.bounce_buffer_bytes;
  engine->self_.checks = !hooks.without_checks;
  if (!hooks.without_lists)
    engine->self_.bounce_pieces =
        static_cast<std::uint32_t>(Bounce::pieces_of(config.bounce_buffer_bytes));
  if (engine->events_.fd() < 0)
    return fail(Code::unavailable, "no descriptor left for the event queue (ulimit -n)");
  if (auto opened = engine->open_rails(); !opened) return fail(std::move(opened.error()));
  auto started =
      engine->start_workers().and_then([&] { return engine->start_metrics(); }).and_then([&] {
        return engine->start_control();
      });
  if (!started) {
    engine->metrics_endpoint_.reset();
    for (const auto& worker : engine->workers_) worker->stop();
    return fail(std::move(started.error()));
  }
  return engine;
}

namespace {

/// What the machine has for an engine.
struct Discovery {
  Locality here;
  providers::Wanted wanted;
  providers::Found found;
};

/// `config`: resolved and checked.
Result<Discovery> discover_for(const Config& config) {
  auto here = Locality::look(config);
  if (!here) return fail(std::move(here.error()));
  providers::Wanted wanted = wanted_of(config, *here);
  auto found = providers::discover(wanted);
  if (!found) return fail(std::move(found.error()));
  return Discovery{std::move(*here), std::move(wanted), std::move(*found)};
}

/// As open() would find it.
Result<Discovery> discover_before_opening(const Config& call) {
  return resolve_settings(call, environment_for(call))
      .and_then([](Settings&& settings) { return checked_config(std::move(settings.config)); })
      .and_then(discover_for);
}

}  // namespace

Result<std::vector<Candidate>> EngineState::discover(const Config& call) {
  return discover_before_opening(call).map(
      [](Discovery&& discovery) { return std::move(discovery.found.candidates); });
}

Result<Topology> EngineState::topology(const Config& call) {
  return discover_before_opening(call).map([](Discovery&& discovery) {
    return with_candidates(discovery.here.topology(), discovery.found.candidates);
  });
}

void EngineState::tell(LinkId link, Notice notice) {
  if (!hooks_.lose || !hooks_.lose(notice)) control_->send(link, std::move(notice));
}

EndpointDecorator& endpoint_decorator() {
  static EndpointDecorator decorator;
  return decorator;
}

Result<void> EngineState::open_rails() {
  auto discovery = discover_for(config_);
  if (!discovery) return fail(std::move(discovery.error()));
  locality_ = std::move(discovery->here);
  candidates_ = std::move(discovery->found.candidates);
  const providers::Wanted& wanted = discovery->wanted;
  const auto& nics = discovery->found.nics;
  RailCounts opened;
  for (const auto& [nic, candidate] : nics) {
    unsigned& count = opened[nic->provider()];
    // What the provider allocates now comes from the NIC's node.
    const topo::NearNode near(config_.place_threads ? locality_.numa_node_of(candidates_[candidate])
                                                    : -1);
    auto result = open_nic(*nic, count, wanted);
    if (result) continue;
    // One NIC of several may be broken, but not silently.
    log(LogLevel::warning, "going on without {} {}: {}", candidates_[candidate].provider,
        candidates_[candidate].domain, result.error().to_string());
    candidates_[candidate].taken = false;
    candidates_[candidate].reason = result.error().to_string();
  }
  if (auto had = check_named_are_had(nics, opened); !had) return had;
  introduce_rails();
  std::vector<std::string> in_use;
  for (const auto& [provider, count] : opened)
    if (count > 0) in_use.emplace_back(provider);
  fallback_ = providers::fallback(wanted, in_use);
  if (!fallback_.empty()) log(LogLevel::warning, "a slower way is taken: {}", fallback_);
  return {};
}

/// What was asked for by name and can't be had is an error, never a silent fallback.
Result<void> EngineState::check_named_are_had(const std::vector<providers::Taken>& taken,
                                              const RailCounts& opened) const {
  std::vector<std::string> reasons;
  for (const auto& [nic, index] : taken) {
    const Candidate& candidate = candidates_[index];
    if (candidate.taken) continue;
    reasons.push_back(
        fmt::format("{} {}: {}", candidate.provider, candidate.domain, candidate.reason));
    const auto& nics = config_.nics;
    if (std::find(nics.begin(), nics.end(), candidate.domain) != nics.end())
      return fail(Code::unavailable, reasons.back());
  }
  const bool named = std::any_of(config_.providers.begin(), config_.providers.end(),
                                 [](const std::string& each) { return !each.starts_with('^'); });
  const bool all =
      std::all_of(opened.begin(), opened.end(), [](const auto& each) { return each.second > 0; });
  if (!rails_.empty() && (all || !named)) return {};
  if (reasons.empty())
    for (const Candidate& each : candidates_)
      reasons.push_back(fmt::format("{}: {}", each.provider, each.reason));
  const char* what =
      rails_.empty() ? "no rail could be opened" : "not all providers that were named can be used";
  return fail(Code::unavailable, fmt::format("{}; {}", what, fmt::join(reasons, "; ")));
}

void EngineState::introduce_rails() {
  auto names = std::make_shared<std::vector<std::string>>();
  for (const auto& rail : rails_) {
    names->push_back(rail->name());
    const Capability& record = rail->capability();
    RailAddress& told = self_.rails.emplace_back(
        RailAddress{record.provider, record.protocol, record.address_format, record.same_host_only,
                    rail->endpoint().address()});
    locality_.add_rail(record, kind_of(told));
    told.mbps =
        static_cast<std::uint32_t>(std::clamp(locality_.gbps_of(rail->index()), 0.0, 1e6) * 1000);
  }
  rail_names_ = std::move(names);
  std::vector<LeaseWords::Reader> readers;
  for (const auto& rail : rails_)
    readers.push_back(
        {rail->index(), &rail->endpoint(), [each = rail.get()] { return each->closed(); }});
  lease_words_ = std::make_shared<LeaseWords>(std::move(readers));
}

/// Opens as many rails on it as are best, or asked for; all or none. `count`: those of its
/// provider.
Result<void> EngineState::open_nic(const providers::Nic& nic, unsigned& count,
                                   const providers::Wanted& wanted) {
  Rail::Hooks hooks;
  hooks.find_grant = [this](std::uint64_t lease) { return owned_.find(lease); };
  hooks.on_broken = [this](PeerState& peer, const Error& error) {
    // Its end may be seen here before the control connection tells of it.
    control_->hang_up(peer.link, "the data path to the peer ended: " + error.to_string(),
                      Code::peer_down);
  };
  hooks.tell = [this](const PeerState& peer, Notice notice) {
    control_->send(peer.link, std::move(notice));
  };
  hooks.flush = [this] { return arrivals_.flush(); };
  hooks.decorate = hooks_.decorate;
  std::vector<std::unique_ptr<Rail>> opened;
  std::size_t wanted_rails = 1;
  while (opened.size() < wanted_rails) {
    auto endpoint = nic.open();
    if (!endpoint) return fail(std::move(endpoint.error()));
    if (const auto& decorate = endpoint_decorator()) *endpoint = decorate(std::move(*endpoint));
    const Capability& record = (*endpoint)->capability();
    if (const std::string why = providers::reject_reason(record, wanted); !why.empty())
      return fail(Code::unavailable, why);
    if (auto fits = check_message_size(config_, record); !fits) return fits;
    const auto settings = rail_settings(config_, record, !hooks_.without_lists);
    wanted_rails = settings.plan.rails;
    const auto index = static_cast<std::uint32_t>(rails_.size() + opened.size());
    opened.push_back(
        std::make_unique<Rail>(index, fmt::format("{}:{}", nic.provider(), count + opened.size()),
                               std::move(*endpoint), settings, hooks));
  }
  count += static_cast<unsigned>(opened.size());
  std::move(opened.begin(), opened.end(), std::back_inserter(rails_));
  return {};
}

/// The rails of one kind go to different threads; those of different kinds share them, since a peer
/// is reached by one kind at a time. Neighbours share a thread where there are fewer of these.
Result<void> EngineState::start_workers() {
  std::map<RailKind, std::size_t> opened;
  std::size_t most = 0;
  for (const RailAddress& rail : self_.rails) most = std::max(most, ++opened[kind_of(rail)]);
  const std::size_t wanted =
      config_.threads > 0 ? config_.threads : std::min<std::size_t>(most, topo::usable_cores());
  for (std::size_t i = 0; i < std::min(wanted, rails_.size()); ++i)
    workers_.push_back(std::make_unique<Worker>(config_.spin));
  const std::size_t threads = workers_.size();
  std::map<RailKind, std::vector<Rail*>> kinds;
  for (const auto& rail : rails_) kinds[kind_of(self_.rails[rail->index()])].push_back(rail.get());
  for (auto& [kind, rails] : kinds) {
    std::stable_sort(rails.begin(), rails.end(), [this](const Rail* a, const Rail* b) {
      return locality_.numa_node_of(a->index()) < locality_.numa_node_of(b->index());
    });
    const std::size_t used = std::min(threads, rails.size());
    for (std::size_t i = 0; i < rails.size(); ++i)
      workers_[i * used / rails.size()]->own(*rails[i]);
  }
  last_ticks_.resize(workers_.size());
  if (config_.progress == Progress::manual) return {};
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (auto started = workers_[i]->start(place_of(i)); !started) return started;
  return {};
}

/// At the NICs of its rails, if those that have a place are in one node. Engines that have as many
/// threads take cores for them alike, so that both ends of what two rails send each other meet.
Worker::Place EngineState::place_of(std::size_t index) const {
  Worker::Place place;
  if (!config_.place_threads) return place;
  std::set<int> nodes;
  bool one_core = false;
  for (const Rail* rail : workers_[index]->rails()) {
    nodes.insert(locality_.numa_node_of(rail->index()));
    one_core = one_core || rail->plan().one_core;
  }
  nodes.erase(-1);
  if (nodes.size() == 1) place.numa_node = *nodes.begin();
  if (one_core && workers_.size() > 1) place.core = static_cast<unsigned>(index);
  return place;
}

Result<void> EngineState::start_control() {
  ControlConfig control;
  control.listen = config_.listen;
  control.advertise = config_.advertise;
  control.allow_unauthenticated_network = config_.allow_unauthenticated_network;
  control.credentials = credential_files(config_);
  control.heartbeat = config_.heartbeat;
  control.death_after = config_.death_after;
  control.first_sequence = hooks_.first_sequence;
  control.progress_alive = [this] { return progress_alive(); };
  control.on_trouble = [](const Error& error) {
    log(LogLevel::info, "control connection: {}", error.to_string());
  };
  auto started = ControlPlane::start(control, self_, *this);
  if (!started) return fail(std::move(started.error()));
  control_ = std::move(*started);
  address_ = control_->address();
  self_.address = address_;
  return {};
}

/// Called before each heartbeat, on the control thread. A thread that did not tick since the last
/// one may have slept: it is woken, and must have ticked by the next.
bool EngineState::progress_alive() {
  stand_in();
  // Under manual progress it is the application that may be slow; that is not death.
  if (config_.progress == Progress::manual) return true;
  bool alive = true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::uint64_t ticks = workers_[i]->ticks();
    alive = alive && ticks != last_ticks_[i];
    last_ticks_[i] = ticks;
    workers_[i]->post([] {});
  }
  return alive;
}

/// Does on the control thread what a progress thread that is stuck in the provider can't: ends what
/// is overdue, and what waits for peers that are gone. And ends the grants whose time is over: up
/// to a heartbeat late, which is no harm, since their holders stop by their own clocks, and their
/// memory is not free before it is revoked.
void EngineState::stand_in() {
  owned_.end_expired(Clock::now());
  dated_waits_.end_overdue(Clock::now());
  for (const auto& worker : workers_) worker->end_overdue(Clock::now());
  for (const auto& peer : std::exchange(mourned_, {})) peer->mailbox.close(peer->down_error());
  watch_rails();
}

std::size_t EngineState::progress(Clock::time_point now) {
  if (config_.progress == Progress::threads) return lead(now).done;
  const std::unique_lock lock(progress_mutex_, std::try_to_lock);
  if (!lock || closed_) return 0;
  std::size_t done = 0;
  bool busy = false;
  for (const auto& worker : workers_) {
    if (!worker->has_work()) continue;
    busy = true;
    done += worker->step(now);
  }
  const bool leisure = done == 0;
  for (const auto& worker : workers_) {
    if (worker->stepped_at() == now) continue;
    // One that has work has it from those above.
    const bool wanted = !busy || worker->has_work();
    done += wanted ? worker->step(now) : worker->glance(now, leisure);
  }
  return done;
}

/// In the stead of progress threads. What would be called back there is called back here.
Worker::Led EngineState::lead(Clock::time_point now) {
  Worker::Led all;
  const bool callers_work = config_.copy_at_once_bytes > 0;
  if (config_.progress == Progress::manual || !callers_work || InCallback::now()) return all;
  for (const auto& worker : workers_) {
    const Worker::Led led = worker->lead(now);
    all.leads = all.leads || led.leads;
    all.done += led.done;
  }
  return all;
}

void EngineState::hand_back() {
  for (const auto& worker : workers_) worker->hand_back();
}

void EngineState::rest() {
  // What others do with the engine meanwhile, or what comes for rails without a descriptor, is
  // looked for after this.
  constexpr timespec longest{0, 50'000};
  const std::unique_lock lock(progress_mutex_, std::try_to_lock);
  std::vector<pollfd> waited;
  if (lock && !closed_)
    for (const auto& worker : workers_)
      if (!worker->may_sleep(waited)) return;
  ppoll(waited.data(), waited.size(), &longest, nullptr);
}

Info EngineState::info() {
  Info info;
  info.name = self_.name;
  info.incarnation = self_.incarnation;
  info.address = address_;
  info.candidates = candidates_;
  info.settings = settings_;
  info.fallback = fallback_;
  info.transfers_active = admission_.taken();
  const Call call(*this);
  if (call.refused()) return info;
  for (const auto& rail : rails_) {
    const auto owner = std::find_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
      return worker.get() == &rail->worker();
    });
    const Rail::Counters& counters = rail->counters();
    info.rails.push_back({rail->name(), rail->capability(),
                          static_cast<unsigned>(owner - workers_.begin()),
                          counters.all_operations(), counters.all_bytes(), counters.in_flight,
                          counters.lost, locality_.numa_node_of(rail->index())});
  }
  info.segments = segments();
  return info;
}

std::vector<NicCounters> EngineState::nic_counters() {
  std::vector<NicCounters> all;
  const Call call(*this);
  if (call.refused()) return all;
  for (const auto& rail : rails_) {
    const std::string& nic = rail->capability().domain;
    auto known =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.nic == nic; });
    if (known == all.end()) {
      auto counters = topo::read_nic_counters(topo::sysfs(), nic);
      if (!counters) continue;
      known = all.insert(all.end(), std::move(*counters));
    }
    known->rails.push_back(rail->name());
  }
  return all;
}

std::uint64_t EngineState::segments() {
  const std::lock_guard lock(segments_mutex_);
  return static_cast<std::uint64_t>(
      std::count_if(segments_.begin(), segments_.end(),
                    [](const std::shared_ptr<LocalKeys>& keys) { return !keys->closed(); }));
}

/// Gives messages that wait to be sent a chance to go.
void EngineState::flush(Deadline deadline) {
  for (const auto& peer : peers_.all_up())
    wait([&](Deadline until) { return peer->outbox.wait_idle(until); }, deadline);
}

Result<void> EngineState::close(Deadline deadline) {
  if (forked()) return fail(forked_error());
  if (closing_.exchange(true)) return {};
  metrics_endpoint_.reset();
  admission_.close();
  flush(deadline);
  peers_.close();
  for (const auto& worker : workers_) worker->end_all(closed_error());
  give_grants_back(nullptr);
  const bool returned = take_back_what_was_lent(deadline);
  auto stopped = control_->stop(deadline);
  // The control thread did this while there was one.
  if (stopped)
    for (const auto& peer : std::exchange(mourned_, {})) peer->mailbox.close(peer->down_error());

  // Closing endpoints may block for ever in some providers, so it runs aside; what it works on is
  // kept alive by it alone if it is overdue.
  const auto done = std::make_shared<CompletionSlot>();
  std::thread aside([self = shared_from_this(), done] {
    if (self->tear_down()) return done->complete(std::nullopt);
    done->complete(Error(Code::quarantined,
                         "a device does not end its copies: what they touch is kept, and must not "
                         "be reused"));
  });
  if (!done->wait(Deadline::at(std::max(deadline.when(), Clock::now() + shortest_close)))) {
    aside.detach();
    return fail(Code::quarantined,
                "a rail did not close in time; it is abandoned with its memory still registered");
  }
  aside.join();
  if (const auto& error = done->error()) return fail(*error);
  if (!returned)
    return fail(Code::quarantined,
                "a process still has GPU memory mapped that was lent to it: it must not be reused");
  return stopped;
}

/// False if memory is still being copied.
bool EngineState::tear_down() {
  // Calls under way end soon: what they wait for has been told that the engine closes.
  for (std::uint32_t calls = calls_; calls > 0; calls = calls_) calls_.wait(calls);
  const std::lock_guard lock(progress_mutex_);
  closed_ = true;
  for (const auto& worker : workers_) worker->stop();
  hasher_.stop();
  for (const auto& worker : workers_) {
    worker->empty_inbox();
    worker->end_all(closed_error());
  }
  for (const auto& rail : rails_) rail->shut();
  const Deadline copies = Deadline::in(longest_copies);
  bool settled = true;
  for (const auto& rail : rails_) settled = rail->settle(copies) && settled;
  owned_.clear();
  lease_words_->close();
  {
    const std::lock_guard lock(segments_mutex_);
    for (const auto& keys : segments_) keys->close();
  }
  rails_.clear();
  return settled;
}

EngineState::~EngineState() = default;

}  // namespace weft::core
