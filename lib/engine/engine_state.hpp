// What an Engine handle stands for. One class, in files by what it does: opening and closing,
// peers, memory, transfers, messages.
#pragma once

#include <atomic>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "base/backoff.hpp"
#include "base/fork_guard.hpp"
#include "base/spin.hpp"
#include "control/control.hpp"
#include "engine/admission.hpp"
#include "engine/dated_waits.hpp"
#include "engine/event_queue.hpp"
#include "engine/hooks.hpp"
#include "engine/inline_copy.hpp"
#include "engine/locality.hpp"
#include "engine/peer_table.hpp"
#include "engine/rail_watch.hpp"
#include "engine/reopenings.hpp"
#include "engine/worker.hpp"
#include "lease/directory.hpp"
#include "lease/imported_grants.hpp"
#include "lease/lease_words.hpp"
#include "lease/owned_grants.hpp"
#include "lease/peer_key.hpp"
#include "lease/remote_state.hpp"
#include "memory/arrival_flush.hpp"
#include "memory/segment_state.hpp"
#include "metrics/endpoint.hpp"
#include "metrics/families.hpp"
#include "metrics/ledger.hpp"
#include "peer/peer_state.hpp"
#include "providers/provider.hpp"
#include "rail/rail.hpp"
#include "transfer/copied_transfer.hpp"
#include "transfer/placement.hpp"
#include "transfer/transfer_state.hpp"
#include "verify/checks.hpp"
#include "verify/hasher.hpp"

namespace weft::core {

/// Whether it refuses any path.
bool has_policies(const Config& config);

class EngineState final : public std::enable_shared_from_this<EngineState>,
                          public ControlHandler,
                          public TransferHost {
 public:
  static Result<std::shared_ptr<EngineState>> open(const Config& call, const EngineHooks& hooks);
  ~EngineState() override;
  /// What open() would look at and take.
  static Result<std::vector<Candidate>> discover(const Config& call);
  static Result<Topology> topology(const Config& call);

  /// Every public call holds one of these: rails stay open until it is done.
  class Call {
   public:
    explicit Call(EngineState& engine) : engine_(engine) { ++engine_.calls_; }
    ~Call() {
      --engine_.calls_;
      if (engine_.closing_) engine_.calls_.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Why the call can't be served: a forked child, or a closed engine.
    std::optional<Error> refused() const {
      if (engine_.forked()) return forked_error();
      if (engine_.closing_) return Error(Code::closed, "the engine is closed");
      return std::nullopt;
    }

   private:
    EngineState& engine_;
  };

  bool forked() const noexcept { return core::fork_generation() != fork_generation_; }
  Result<void> close(Deadline deadline);

  const Config& config() const noexcept { return config_; }
  const std::string& name() const noexcept { return self_.name; }
  const std::string& address() const noexcept { return address_; }
  Info info();
  std::vector<NicCounters> nic_counters();
  EventQueue& events() noexcept { return events_; }
  std::size_t progress(Clock::time_point now);
  Worker::Led lead(Clock::time_point now);
  void hand_back();
  /// Looks until `done`, or until then, and makes progress meanwhile where that is quicker than to
  /// have the threads do it. Not where others compute on this core.
  template <typename Done>
  void look(Done&& done, Clock::time_point until);
  /// Manual progress, where others compute on the caller's core: instead of looking again sleeps
  /// until there is something for progress(), or for a while.
  void rest();
  /// Waits for `ended(deadline)`, making progress meanwhile if that is the caller's to do.
  template <typename Wait>
  bool wait(Wait&& ended, Deadline deadline);

  /// That a peer, or what came from it, is this engine's.
  Result<void> check_own(const PeerState& peer) const {
    if (peer.engine == this) return {};
    return fail(Code::invalid_argument, "the peer is another engine's");
  }

  /// Indices of the rails that serve memory at a place.
  std::vector<std::size_t> serving(const Place& place) const;

  // peers.cpp
  Result<std::shared_ptr<PeerState>> connect(std::string_view address, Deadline deadline,
                                             bool keep = false);
  Result<std::shared_ptr<PeerState>> peer(std::string_view name, Deadline deadline);
  Result<std::shared_ptr<PeerState>> accept(Deadline deadline);
  std::vector<std::shared_ptr<PeerState>> peers() { return peers_.all_up(); }
  Result<void> disconnect(PeerState& peer);

  // memory.cpp
  Result<std::shared_ptr<SegmentState>> add(const Memory& memory);
  Result<Place> place_of(const Memory& memory, const Allocation& allocation,
                         const Device& device) const;
  Result<Place> place_on(const Device& gpu, const Memory& memory) const;
  Result<void> prepare_staging(const Device& device, Rail& rail);
  Result<void> let_serve(Rail& rail, SegmentState& segment);
  Result<std::shared_ptr<GrantState>> grant(const std::shared_ptr<SegmentState>& segment,
                                            std::span<const Range> ranges, Rights rights,
                                            Nanoseconds ttl);
  Result<Revoked> revoke(const std::shared_ptr<GrantState>& grant, Deadline deadline);
  Result<Revoked> fence(const std::shared_ptr<GrantState>& grant, Deadline deadline,
                        FenceScope reach);
  Result<void> release(SegmentState& segment, Deadline deadline);
  Result<std::shared_ptr<RemoteState>> import(Bytes blob);
  Result<std::shared_ptr<RemoteState>> confirmed(const ImportedGrants::Added& added);
  Result<void> describe_keys(GrantState::Parts& grant, Rights rights);
  Result<PeerKey> key_for_peers(const SegmentState& segment, const Range& hull, Rail& rail,
                                Rights rights);
  Result<void> describe_epoch(GrantState::Parts& grant);
  void settle_ended();
  Revoked settle(const std::shared_ptr<GrantState>& grant);
  bool copies_finished(std::span<const std::shared_ptr<GrantState>> ended, Deadline deadline);
  Result<void> publish(std::string_view name, const std::shared_ptr<GrantState>& grant);
  Result<std::shared_ptr<RemoteState>> lookup(PeerState& peer, std::string_view name,
                                              Deadline deadline);

  // reopening.cpp
  Result<void> reopen(std::string_view rail, Deadline deadline);
  Result<void> close_and_open(Rail& rail, Deadline deadline);

  // transfers.cpp
  Result<std::shared_ptr<const PreparedState>> prepare(const std::shared_ptr<SegmentState>& local,
                                                       const std::shared_ptr<RemoteState>& remote,
                                                       Direction direction, PieceList pieces);
  Result<std::shared_ptr<Submitted>> submit(const std::shared_ptr<const PreparedState>& prepared,
                                            const Picks& picks, TransferOptions&& options);

  // explain.cpp
  Result<Path> explain(const SegmentState& local, const RemoteState& remote, Direction direction,
                       const TransferOptions& options);
  Result<Path> explain(const Place& local, const std::shared_ptr<PeerState>& peer,
                       const Place& remote, Direction direction, const TransferOptions& options);

  // metrics.cpp
  Result<std::string> metrics_text();
  Result<std::string> snapshot();
  Result<std::vector<SlowTransfer>> slowest_transfers();
  const std::string& metrics_address() const noexcept { return metrics_address_; }

  // checks.cpp
  Result<void> check_verifiable(const PreparedState& prepared) const;
  Result<Hasher::Job> job_for(const std::shared_ptr<PeerState>& peer, const CheckRequest& notice);

  // messages.cpp
  Result<void> send(const std::shared_ptr<PeerState>& peer, MessageKind kind, std::uint64_t tag,
                    Bytes bytes, Deadline deadline);
  Result<std::shared_ptr<ExpectState>> expect(const std::shared_ptr<PeerState>& peer,
                                              std::uint64_t id, std::uint64_t count,
                                              NotifyOptions options);
  Result<std::shared_ptr<ReceiveState>> receive(const std::shared_ptr<PeerState>& peer,
                                                std::uint64_t tag, std::uint64_t mask,
                                                NotifyOptions options);

 private:
  EngineState(const Config& config, const EngineHooks& hooks);

  // open.cpp
  Result<void> open_rails();
  using RailCounts = std::map<std::string_view, unsigned>;  // by provider
  Result<void> open_nic(const providers::Nic& nic, unsigned& count,
                        const providers::Wanted& wanted);
  Result<void> check_named_are_had(const std::vector<providers::Taken>& taken,
                                   const RailCounts& opened) const;
  void introduce_rails();
  Result<void> start_workers();
  Worker::Place place_of(std::size_t index) const;
  Result<void> start_metrics();
  bool shares_metrics_address() const;
  Result<void> start_control();
  void tell(LinkId link, Notice notice);
  bool progress_alive();
  void stand_in();
  bool wait_stopped(const GrantState& grant, Deadline deadline);
  bool take_back_what_was_lent(Deadline deadline);
  Result<Process> borrower(LinkId link) const;
  void stop_transfers(RemoteState& remote, const Error& why);
  std::uint64_t segments();
  MetricsReading read_metrics();
  std::string make_snapshot();
  void flush(Deadline deadline);
  void give_grants_back(const PeerState* peer);
  bool tear_down();

  // ControlHandler, in peers.cpp
  Result<void> meet(LinkId link, const Introduction& self, const Introduction& peer, bool same_host,
                    const std::string& same_host_reason) override;
  void up(LinkId link, bool incoming) override;
  void received(LinkId link, Notice notice) override;
  void down(LinkId link, const Error& why) override;
  Result<void> make_routes(const std::shared_ptr<PeerState>& met, const Introduction& self,
                           const std::string& same_host_reason);
  Result<void> add_to_rails(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token);
  void hand_to(Worker& worker, const std::function<void()>& task);
  void begin_reopening(Rail& rail, const Reopenings::Done& done);
  void stage_what_was_lost(const Rail& rail);
  void reopen_aside(std::uint32_t index, const Reopenings::Done& done);
  void watch_rails();
  void tell_moved(Rail& rail, OwnedGrants::Renewed renewed);
  void tell_moved(const PeerState& peer, std::uint32_t rail, Blob address);
  void tell_moved_rails(const PeerState& peer);
  void follow(PeerState& peer, std::uint32_t rail, Blob address);
  void forget_on_rails(const std::shared_ptr<PeerState>& peer);
  bool run_on(Worker& worker, const std::function<void()>& task, Deadline deadline);
  void handle(PeerState& peer, LookupRequest&& notice);
  void handle(PeerState& peer, LookupAbandoned&& notice);
  void handle(PeerState& peer, LookupReply&& notice);
  void handle(PeerState& peer, SignalFailed&& notice);
  void handle(PeerState& peer, DetouredMessage&& notice);
  void handle(PeerState& peer, DetourTaken&& notice);
  void handle(PeerState& peer, RevokeRequest&& notice);
  void handle(PeerState& peer, RevokeConfirmed&& notice);
  void handle(PeerState& peer, GrantQuery&& notice);
  void handle(PeerState& peer, GrantStatus&& notice);
  void handle(PeerState& peer, CheckRequest&& notice);
  void handle(PeerState& peer, CheckReply&& notice);
  void handle(PeerState& peer, RailMoved&& notice);
  void handle(PeerState& peer, RailFollowed&& notice);

  // TransferHost, in transfers.cpp
  void verify(const std::shared_ptr<TransferState>& transfer) override;
  void raise_signal(const std::shared_ptr<TransferState>& transfer) override;
  void offer_again(const std::shared_ptr<TransferState>& transfer) override;
  std::size_t proofs_of(const TransferState& transfer, std::size_t rail) const override;
  std::optional<std::size_t> another_rail(const TransferState& transfer,
                                          const std::vector<std::size_t>& left) const override;
  void transfer_ends(TransferState& transfer) override;
  void transfer_ended(TransferState& transfer) override;
  void memory_let_go(TransferState& transfer) override;
  void enter_copies(const PreparedState& prepared, std::uint64_t own,
                    Report& report) override;  // in explain.cpp
  bool hides_arrivals(const TransferState& transfer) const override;
  Result<void> make_visible(const TransferState& transfer) override;
  Result<void> check_submission(const PreparedState& prepared, const TransferOptions& options,
                                Clock::time_point now);
  Result<std::shared_ptr<Submitted>> submit_prepared(
      const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
      TransferOptions&& options);
  Result<void> admit(const TransferOptions& options);
  void leave_silent_rails(TransferState& transfer);
  /// Which rails serve two memories, by index on either side.
  struct RailsBetween {
    PeerState* peer = nullptr;
    Place local, remote;
    RailSets::Rails ours, theirs;  // not empty
    Lending lending;
    Mapping mapping;
    // Between segments: whether the NICs of all of them reach the memory of their side by
    // themselves, and where one side has none that does, why.
    bool seen = false, direct = false;
    std::string why_local_staged = {}, why_remote_staged = {};
  };
  static bool between_gpus(const SegmentState& local, const RemoteState& remote);
  Result<std::byte*> borrow(const SegmentState& local, const RemoteState& remote) const;
  Mapping mapping_of(const RailsBetween& rails, const SegmentState& local,
                     const RemoteState& remote) const;
  Result<RailsBetween> rails_for(const SegmentState& local, const RemoteState& remote) const;
  Result<std::shared_ptr<RailSet>> rails_between(const RailsBetween& rails);
  Result<TransferShape> shape_of(const PreparedState& prepared, const Picks& picks,
                                 TransferOptions& options, Clock::time_point now);
  /// On the caller's stack, for as many rails as machines have.
  using Loads = SmallVector<RailLoad, 32>;
  Loads loads_of(const RailSet& set, Priority priority, Clock::time_point now) const;
  void start(TransferState& transfer, const Placement& placement, std::span<const RailLoad> chosen);
  bool post_inline(const std::shared_ptr<TransferState>& transfer, Clock::time_point now);
  void offer(const std::shared_ptr<TransferState>& transfer, Waiters waiters,
             Clock::time_point now);
  bool is_over(const PreparedState& prepared, const TransferShape& shape,
               const InlineCopy::Done& done) const;
  std::shared_ptr<Submitted> ended_inline(CopiedTransfer::Facts facts,
                                          const TransferOptions& options, AdmissionSlot& slot);
  void take_part(TransferState& transfer, Deadline deadline) override;
  Result<void> look_at_event(TransferOptions& options) const;
  Result<TransportKind> transport_for(const PreparedState& prepared,
                                      const TransferOptions& options) const;
  Result<void> check_payload(const PeerState& peer, std::size_t bytes) const;

  // explain.cpp
  Result<Path> explain(const RailsBetween& rails, Direction direction, TransportKind asked) const;
  std::vector<std::string> not_had_before(const Capability& record) const;
  TransportKind transport_asked(const TransferOptions& options) const;
  std::string refusal(
      const Path& path, const PeerState& peer, const TransferOptions& options,
      std::uint64_t smallest_piece = std::numeric_limits<std::uint64_t>::max()) const;
  const KnownPath& known_path(const PreparedState& prepared, TransportKind asked) const;
  Result<void> check_policies(const PreparedState& prepared, const TransferOptions& options);

  // messages.cpp
  template <typename Wait>
  class Notifying;
  template <typename Wait, typename... Of>
  Result<std::shared_ptr<Wait>> begin(const std::shared_ptr<PeerState>& peer, Event::Kind kind,
                                      NotifyOptions options, Of... what);

  const Config config_;
  const bool has_policies_ = has_policies(config_);
  const EngineHooks hooks_;
  const std::uint64_t fork_generation_ = core::fork_generation();
  Introduction self_;
  std::string address_;
  std::vector<Candidate> candidates_;
  std::vector<Setting> settings_;
  std::string fallback_;  // Info::fallback
  Locality locality_;
  std::atomic<bool> closing_{false};
  std::atomic<std::uint32_t> calls_{0};

  EventQueue events_;
  ArrivalFlush arrivals_;
  // Rails before the workers that drive them.
  std::vector<std::unique_ptr<Rail>> rails_;
  std::shared_ptr<const std::vector<std::string>> rail_names_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::uint64_t> last_ticks_;
  std::mutex progress_mutex_;  // manual progress: held by whoever uses the rails
  bool closed_ = false;        // with progress_mutex_: there are no rails any more

  PeerTable peers_;
  std::vector<std::shared_ptr<PeerState>>
      mourned_;  // gone since the last heartbeat; control thread
  Directory directory_;
  std::shared_ptr<LeaseWords> lease_words_;
  OwnedGrants owned_;
  ImportedGrants imported_;
  Reopenings reopening_;
  std::map<std::uint32_t, RailWatch> rail_watches_;  // control thread
  std::atomic<std::uint64_t> next_segment_{1};
  std::mutex segments_mutex_;
  std::vector<std::shared_ptr<LocalKeys>> segments_;  // those that are there, and some that went
  std::size_t sweep_segments_at_ = 64;                // with segments_mutex_

  Admission admission_{config_.max_transfers};
  InlineCopy inline_copy_{{.most_bytes = config_.copy_at_once_bytes,
                           .caller_drives = config_.progress == Progress::manual,
                           .trusts_reads = hooks_.trusts_reads},
                          rails_};
  std::atomic<std::uint64_t> next_request_{1};

  DatedWaits dated_waits_;
  Checks checks_;
  Hasher hasher_;

  std::unique_ptr<Ledger> ledger_;  // null where nothing is to be counted
  std::string metrics_address_;

  // Last: their threads call into everything above.
  std::unique_ptr<ControlPlane> control_;
  std::unique_ptr<MetricsEndpoint> metrics_endpoint_;  // null without an address
};

inline Error moved_from() {
  return Error(Code::closed, "the handle was moved from");
}

/// Runs `body` if the engine can be used, and keeps its rails open meanwhile.
template <typename Body>
auto call(const std::shared_ptr<EngineState>& engine, Body&& body) -> decltype(body()) {
  if (!engine) return fail(moved_from());
  const EngineState::Call call(*engine);
  if (auto error = call.refused()) return fail(std::move(*error));
  return body();
}

template <typename Done>
void EngineState::look(Done&& done, Clock::time_point until) {
  CpuPressure& cpu_pressure = cpu_pressure_of_this_thread();
  thread_local Backoff backoff;
  auto now = Clock::now();
  backoff.slept(now);
  while (!done() && now < until && !cpu_pressure.at(now)) {
    const Worker::Led led = lead(now);
    if (!led.leads) sched_yield();
    if (led.leads && led.done == 0) backoff(now);
    const auto back = Clock::now();
    if (!led.leads) cpu_pressure.waited(back - now, back);
    now = back;
  }
}

template <typename Wait>
bool EngineState::wait(Wait&& ended, Deadline deadline) {
  if (config_.progress == Progress::threads) return ended(deadline);
  const Deadline long_past = Deadline::at({});
  thread_local Backoff backoff;
  backoff.slept(Clock::now());
  while (!ended(long_past)) {
    const auto now = Clock::now();
    if (now >= deadline.when()) return false;
    if (progress(now) > 0) continue;
    if (backoff.crowded(now)) {
      rest();
      backoff.slept(Clock::now());
    } else {
      backoff(now);
    }
  }
  return true;
}

}  // namespace weft::core
