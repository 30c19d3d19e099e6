// Engine: preparing and submitting transfers, and what follows their ends.
#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <span>

#include "base/callback.hpp"
#include "device/event.hpp"
#include "engine/engine_state.hpp"
#include "path/describe.hpp"
#include "peer/pairing.hpp"

namespace weft::core {
namespace {

std::string why_no_key(const std::string& in_the_owners_words) {
  const std::string none = "none of the peer's rails has a key for it";
  return in_the_owners_words.empty() ? none : fmt::format("{}: {}", none, in_the_owners_words);
}

/// Those for which it holds come first, each in its order; returns how many they are.
template <typename Holds>
std::size_t put_first(RailSets::Rails& rails, Holds&& holds) {
  RailSets::Rails sorted, rest;
  for (const std::uint32_t rail : rails) (holds(rail) ? sorted : rest).push_back(rail);
  const std::size_t first = sorted.size();
  for (const std::uint32_t rail : rest) sorted.push_back(rail);
  rails = sorted;
  return first;
}

}  // namespace

Result<std::shared_ptr<const PreparedState>> EngineState::prepare(
    const std::shared_ptr<SegmentState>& local, const std::shared_ptr<RemoteState>& remote,
    Direction direction, PieceList pieces) {
  const GrantDescription& grant = remote->description();
  const Rights needed = direction == Direction::write ? Rights::write : Rights::read;
  if (!includes(grant.rights, needed))
    return fail(
        Error(Code::permission_denied, fmt::format("the grant does not allow to {}",
                                                   needed == Rights::write ? "write" : "read"))
            .with_peer(grant.engine));
  if (!local->belongs_to(*this))
    return fail(Code::invalid_argument, "the local segment is another engine's");
  if (auto own = check_own(*remote->peer()); !own) return fail(std::move(own.error()));
  auto bytes = check_pieces(pieces, {local->size(), grant.ranges});
  if (!bytes) return fail(std::move(bytes.error()));
  const std::uint32_t losses = losses_of(*local, *remote);  // before it is seen what is lost
  const auto rails = rails_for(*local, *remote);
  if (!rails) return fail(rails.error());
  auto set = rails_between(*rails);
  if (!set) return fail(std::move(set.error()));
  auto prepared = std::make_shared<PreparedState>();
  prepared->engine = weak_from_this();
  prepared->rail_names = rail_names_;
  prepared->predictor = inline_copy_.predictor();
  prepared->path = std::move(*set);
  prepared->staged = !rails->direct;
  prepared->mapped = rails->mapping.mapped;
  prepared->losses = losses;
  prepared->local = local;
  prepared->remote = remote;
  prepared->direction = direction;
  prepared->pieces = std::move(pieces);
  prepared->bytes = *bytes;
  if (between_gpus(*local, *remote)) {
    if (auto lent = borrow(*local, *remote))
      prepared->lent = *lent;
    else
      prepared->not_lent = lent.error().message();
  }
  return std::shared_ptr<const PreparedState>(std::move(prepared));
}

bool EngineState::between_gpus(const SegmentState& local, const RemoteState& remote) {
  return local.place().kind == MemoryKind::device &&
         remote.description().place.kind == MemoryKind::device;
}

/// Between GPUs: where the remote memory lies for copies by the local one. May block the first
/// time.
Result<std::byte*> EngineState::borrow(const SegmentState& local, const RemoteState& remote) const {
  const GrantDescription& grant = remote.description();
  if (!remote.peer()->same_host) return fail(Code::unsupported, "another host");
  if (!config_.share_gpu_memory)
    return fail(Code::unsupported, "this engine shares no GPU memory (share_gpu_memory)");
  // By the word of the lease, over any of these, what is read is proven.
  for (const std::uint32_t rail : remote.peer()->their_rails)
    if (remote.carried_by(rail) && !remote.has_lease_word(rail))
      return fail(Code::unsupported, "the grant lacks the word of its lease for a rail");
  return remote.borrowed()->map(local.device(), grant.segment_size);
}

/// Those that serve both sides; only those whose NICs reach the memory by themselves, if either
/// side has some.
Result<EngineState::RailsBetween> EngineState::rails_for(const SegmentState& local,
                                                         const RemoteState& remote) const {
  PeerState& peer = *remote.peer();
  RailsBetween rails{.peer = &peer,
                     .local = local.place(),
                     .remote = remote.description().place,
                     .ours = {},
                     .theirs = {},
                     .seen = true};
  for (const auto& route : peer.routes)
    if (local.served_by(route->rail->index())) rails.ours.push_back(route->rail->index());
  for (const std::uint32_t rail : peer.their_rails)
    if (remote.carried_by(rail)) rails.theirs.push_back(rail);
  if (rails.ours.empty() || rails.theirs.empty())
    return fail(Error(Code::unavailable, fmt::format("no rail to the peer serves the {} memory",
                                                     rails.ours.empty() ? "local" : "remote"))
                    .with_peer(peer.introduction.name));
  // Each is looked at once: a rail may lose the memory meanwhile.
  const std::size_t ours = put_first(rails.ours, [&](auto rail) { return local.reached_by(rail); });
  const std::size_t theirs =
      put_first(rails.theirs, [&](auto rail) { return remote.reachable_on(rail); });
  rails.direct = ours > 0 && theirs > 0;
  if (ours == 0) rails.why_local_staged = local.why_staged(rails.ours.front());
  if (theirs == 0) rails.why_remote_staged = why_no_key(remote.why_bounced(rails.theirs.front()));
  if (rails.direct) {
    rails.ours.shorten(ours);
    rails.theirs.shorten(theirs);
  }
  rails.mapping = mapping_of(rails, local, remote);
  if (rails.mapping.mapped && rails_[rails.ours.front()]->plan().one_for_mapped) {
    rails.ours.shorten(1);
    rails.theirs.shorten(1);
  }
  return rails;
}

/// Over these, each by those of the other side's that it is paired with.
Result<std::shared_ptr<RailSet>> EngineState::rails_between(const RailsBetween& rails) {
  PeerState& peer = *rails.peer;
  return peer.rail_sets.between(
      rails.ours, rails.theirs, [&]() -> Result<std::shared_ptr<RailSet>> {
        const std::vector<std::uint32_t> ours(rails.ours.begin(), rails.ours.end()),
            theirs(rails.theirs.begin(), rails.theirs.end());
        auto set = std::make_shared<RailSet>();
        for (const PairedRail& paired : spread(self_, ours, peer.introduction, theirs)) {
          Route& route = *peer.route_by_rail[paired.own];
          RailUse use{&route, {}};
          for (const auto& [target, weight] : paired.targets) {
            const auto address = route.addresses.find(target);
            if (address == route.addresses.end())
              return fail(
                  Error(Code::unavailable, "the grant lacks keys for rails that have to be reached")
                      .with_peer(peer.introduction.name));
            use.targets.add({target, &address->second}, weight);
            if (route.rail->plan().one_target) break;
          }
          set->add(paired.own, std::move(use));
        }
        return set;
      });
}

Result<void> EngineState::check_payload(const PeerState& peer, std::size_t bytes) const {
  const std::size_t most =
      std::min<std::size_t>(config_.max_message, peer.introduction.max_message);
  if (bytes <= most) return {};
  return fail(Error(Code::invalid_argument,
                    fmt::format("a message may carry {} bytes between these two, not {}; larger "
                                "data goes by transfers",
                                most, bytes))
                  .with_peer(peer.introduction.name));
}

Result<void> EngineState::check_submission(const PreparedState& prepared,
                                           const TransferOptions& options, Clock::time_point now) {
  const PeerState& peer = *prepared.remote->peer();
  if (!prepared.local->belongs_to(*this))
    return fail(Code::invalid_argument, "the list was prepared by another engine");
  if (!peer.up()) return fail(peer.down_error());
  if (now >= prepared.remote->expires()) return fail(prepared.remote->expired_error());
  if (options.verify)
    if (auto can = check_verifiable(prepared); !can) return can;
  if (options.priority < Priority::latency || options.priority > Priority::bulk)
    return fail(Code::invalid_argument, "there is no such priority");
  if (has_policies_ || options.policy)
    if (auto kept = check_policies(prepared, options); !kept) return kept;
  if (options.event && events_.size() >= config_.max_transfers)
    return fail(Code::queue_full,
                fmt::format("{} events wait to be polled", config_.max_transfers));
  if (options.signal) return check_payload(peer, options.signal->bytes.size());
  return {};
}

/// One of Config::max_transfers, for which the caller may want to wait. transfer_ends() leaves it.
Result<void> EngineState::admit(const TransferOptions& options) {
  if (admission_.enter()) return {};
  // A progress thread can't wait for what it has to do itself.
  const bool waits = options.wait_for_room.has_value() && !InCallback::now();
  bool entered = false;
  const auto ended = [&](Deadline until) {
    return (entered = admission_.enter(until)) || closing_;
  };
  if (waits) wait(ended, *options.wait_for_room);
  if (entered) return {};
  if (closing_) return fail(Code::closed, "the engine is closed");
  const char* more = waits                   ? ", and none has ended in time"
                     : options.wait_for_room ? ", and a callback can't wait for room"
                                             : "";
  return fail(Code::queue_full,
              fmt::format("{} transfers are under way already{}", config_.max_transfers, more));
}

/// What has happened already need not be waited for.
Result<void> EngineState::look_at_event(TransferOptions& options) const {
  const auto happened = cuda_event_happened(options.after_cuda_event);
  if (!happened) return fail(happened.error());
  if (*happened) options.after_cuda_event = nullptr;
  return {};
}

Result<TransportKind> EngineState::transport_for(const PreparedState& prepared,
                                                 const TransferOptions& options) const {
  const TransportKind asked = transport_asked(options);
  const bool refused = asked == TransportKind::device_copy
                           ? prepared.lent == nullptr
                           : asked == TransportKind::one_sided && prepared.staged;
  if (refused) {
    const auto& path = known_path(prepared, asked).path;
    if (!path) return fail(Error(path.error()).with_peer(prepared.remote->description().engine));
  }
  const bool copies = asked == TransportKind::automatic && prepared.lent != nullptr;
  if (copies || asked == TransportKind::device_copy) return TransportKind::device_copy;
  if (prepared.staged) return TransportKind::bounce;
  return asked == TransportKind::automatic ? TransportKind::one_sided : asked;
}

namespace {

Result<std::uint64_t> bytes_of(const PreparedState& prepared, const Picks& picks) {
  if (!picks) return prepared.bytes;
  std::uint64_t bytes = 0;
  for (const std::uint32_t pick : *picks) {
    if (pick >= prepared.pieces.size())
      return fail(Code::invalid_argument,
                  fmt::format("piece {} was picked of a list of {}", pick, prepared.pieces.size()));
    bytes += prepared.pieces[pick].length;
  }
  return bytes;
}

}  // namespace

Result<std::shared_ptr<Submitted>> EngineState::submit(
    const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
    TransferOptions&& options) {
  if (prepared->losses == losses_of(*prepared->local, *prepared->remote))
    return submit_prepared(prepared, picks, std::move(options));
  return prepare(prepared->local, prepared->remote, prepared->direction, prepared->pieces)
      .and_then([&](const std::shared_ptr<const PreparedState>& anew) {
        return submit_prepared(anew, picks, std::move(options));
      });
}

/// What is asked for, if it can be done. An event that has happened need not be waited for.
Result<TransferShape> EngineState::shape_of(const PreparedState& prepared, const Picks& picks,
                                            TransferOptions& options, Clock::time_point now) {
  if (auto checked = check_submission(prepared, options, now); !checked)
    return fail(std::move(checked.error()));
  const auto bytes = bytes_of(prepared, picks);
  if (!bytes) return fail(bytes.error());
  if (options.after_cuda_event != nullptr)
    if (auto looked = look_at_event(options); !looked) return fail(std::move(looked.error()));
  const auto transport = transport_for(prepared, options);
  if (!transport) return fail(transport.error());
  return TransferShape{.bytes = *bytes,
                       .pieces = picks ? picks->size() : prepared.pieces.size(),
                       .priority = options.priority,
                       .transport = *transport,
                       .rails = prepared.path->rails().size(),
                       .mapped = prepared.mapped,
                       .staged = prepared.staged,
                       .followed = options.signal || options.verify,
                       .event = options.event,
                       .waits = options.after_cuda_event != nullptr};
}

EngineState::Loads EngineState::loads_of(const RailSet& set, Priority priority,
                                         Clock::time_point now) const {
  Loads loads;
  const auto& rails = set.rails();
  for (const std::size_t index : rails) {
    RailLoad load{.rail = index};
    if (rails.size() > 1) {
      const Rail& rail = *rails_[index];
      load.aside = set.of(index)->route->is_aside(now) || rail.away();
      load.queued = rail.queued_before(priority);
      load.in_flight = rail.counters().in_flight.load(std::memory_order_relaxed);
    }
    loads.push_back(load);
  }
  return loads;
}

Result<std::shared_ptr<Submitted>> EngineState::submit_prepared(
    const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
    TransferOptions&& options) {
  const auto now = Clock::now();
  auto shape = shape_of(*prepared, picks, options, now);
  if (!shape) return fail(std::move(shape.error()));
  if (auto taken = admit(options); !taken) return fail(std::move(taken.error()));
  AdmissionSlot slot(admission_);
  Entered local(prepared->local->users()), remote(prepared->remote->users());
  if (closing_) return fail(Code::closed, "the engine is closed");
  if (!local) return fail(Code::closed, "the local segment is being released");
  if (!remote) return fail(prepared->remote->ended_error());
  // The time for which it waited for room is not its own.
  const auto begun = options.wait_for_room ? Clock::now() : now;
  const auto deadline =
      options.deadline.value_or(Deadline::in(config_.default_timeout, begun)).when();
  const auto lease_end = prepared->remote->expires();

  // By the caller itself, or over which rails: see placement.hpp.
  shape->in_time = begun < std::min(deadline, lease_end);
  const RailPlan& rail = rails_[prepared->path->rails().front()]->plan();
  const Caller caller = inline_copy_.caller(*shape, admission_);
  const auto copied = inline_copy_.submit(*shape, rail, caller,
                                          {*prepared, picks, now, std::min(deadline, lease_end)});
  if (copied && is_over(*prepared, *shape, *copied)) {
    inline_copy_.ended_unseen(*shape, now);
    return ended_inline(
        {prepared, shape->pieces, shape->priority, now, {}, copied->rail, copied->copied}, options,
        slot);
  }
  Loads loads = loads_of(*prepared->path, shape->priority, now);
  const Placement placement = place(*shape, rail, caller, loads);

  Submission submission(now);
  submission.prepared = prepared;
  submission.bytes = shape->bytes;
  submission.transport = shape->transport;
  submission.waiter_takes_part = placement.waiters != Waiters::watch;
  submission.deadline = deadline;
  submission.lease_end = lease_end;
  submission.trusted = hooks_.trusts_reads;
  if (picks) submission.picks.emplace(picks->begin(), picks->end());
  submission.take(std::move(options));
  for (Entered* each : {&local, &remote}) each->keep();  // memory_let_go() leaves
  slot.keep();
  auto transfer = std::make_shared<TransferState>(std::move(submission), *this);
  start(*transfer, placement, std::span(loads).first(placement.rails));
  if (copied) transfer->copied_at_once(copied->rail, copied->copied);
  if (copied && transfer->ended()) {
    inline_copy_.ended_unseen(*shape, now);
    inline_copy_.at_hand(*transfer);
  } else if (!placement.posted_inline || !post_inline(transfer, begun)) {
    offer(transfer, placement.waiters, now);
  }
  return transfer;
}

void EngineState::start(TransferState& transfer, const Placement& placement,
                        std::span<const RailLoad> chosen) {
  SmallVector<std::size_t, 32> rails;
  for (const RailLoad& load : chosen) rails.push_back(load.rail);
  const Submission& submission = transfer.submission();
  for (const std::size_t rail : rails)
    rails_[rail]->queued_bytes(submission.priority) += submission.bytes / rails.size();
  transfer.start(std::span(rails), {placement.part, placement.even});
}

/// The calling thread posts it, and watches it while it is on its way. False: it is to be offered.
bool EngineState::post_inline(const std::shared_ptr<TransferState>& transfer,
                              Clock::time_point now) {
  Rail& rail = *rails_[transfer->rails().front()];
  {
    const std::unique_lock lock(progress_mutex_, std::try_to_lock);
    if (!lock || closed_ || !rail.worker().begin(rail, transfer, now)) return false;
  }
  if (!transfer->ended()) rail.worker().watch(transfer);
  return true;
}

/// To the threads of its rails, and to those that wait for it.
void EngineState::offer(const std::shared_ptr<TransferState>& transfer, Waiters waiters,
                        Clock::time_point now) {
  inline_copy_.open(transfer, waiters);
  // Watched before it is offered: a thread that carries it may be stuck, and one that nobody
  // watches would outlive its deadline.
  const std::span<const std::uint32_t> rails = transfer->rails();
  Worker& first = rails_[rails.front()]->worker();
  first.watch(transfer);
  if (transfer->waits()) return first.park(transfer);
  bool led = false;
  for (const std::size_t rail : rails) {
    Worker& worker = rails_[rail]->worker();
    worker.offer(*rails_[rail], transfer);
    led = led || worker.waits_for_caller(*rails_[rail]);
  }
  if (led) lead(now);
  inline_copy_.at_hand(*transfer);
}

/// Whether all its bytes are in their place, for everybody to see, and nothing follows.
bool EngineState::is_over(const PreparedState& prepared, const TransferShape& shape,
                          const InlineCopy::Done& done) const {
  if (done.copied.bytes < shape.bytes || shape.followed) return false;
  if (prepared.direction == Direction::read)
    return done.copied.proven && !prepared.local->device().needs_flush();
  return rails_[done.rail]->capability().proof == CompletionProof::visible;
}

/// The caller has copied all of it. It leaves its slot before anybody is told.
std::shared_ptr<Submitted> EngineState::ended_inline(CopiedTransfer::Facts facts,
                                                     const TransferOptions& options,
                                                     AdmissionSlot& slot) {
  facts.ended = Clock::now();
  auto transfer = std::make_shared<CopiedTransfer>(std::move(facts), *this);
  if (ledger_) ledger_->enter(*transfer);
  slot.leave();
  if (options.event)
    events_.push({Event::Kind::transfer_ended, options.cookie, State::done,
                  transfer->prepared().remote->peer()->introduction.name, std::nullopt});
  if (options.on_end) {
    const InCallback here;
    options.on_end({State::done, options.cookie, nullptr});
  }
  return transfer;
}

/// A call of the application's, for which closing waits.
void EngineState::take_part(TransferState& transfer, Deadline deadline) {
  if (!transfer.submission().waiter_takes_part || InCallback::now()) return;
  const Call call(*this);
  if (!call.refused()) inline_copy_.help(transfer, deadline);
}

void EngineState::offer_again(const std::shared_ptr<TransferState>& transfer) {
  for (const std::size_t rail : transfer->schedulers())
    rails_[rail]->worker().offer(*rails_[rail], transfer);
}

std::size_t EngineState::proofs_of(const TransferState& transfer, std::size_t rail) const {
  // A copy that has ended is visible to whatever begins afterwards.
  if (transfer.submission().transport == TransportKind::device_copy) return 0;
  if (rails_[rail]->capability().proof == CompletionProof::visible) return 0;
  const PeerState& peer = transfer.peer();
  // A signal is such an event itself, where it takes the only way that the bytes have taken.
  const Submission& submission = transfer.submission();
  if (peer.one_way() && submission.signal && !submission.verify) return 0;
  return transfer.prepared().path->of(rail)->targets.size();
}

std::optional<std::size_t> EngineState::another_rail(const TransferState& transfer,
                                                     const std::vector<std::size_t>& left) const {
  for (const std::size_t rail : transfer.prepared().path->rails()) {
    if (std::find(left.begin(), left.end(), rail) == left.end()) return rail;
  }
  return std::nullopt;
}

void EngineState::raise_signal(const std::shared_ptr<TransferState>& transfer) {
  const Submission& submission = transfer->submission();
  const auto& peer = transfer->prepared().remote->peer();
  if (!peer->outbox.push_unbounded(
          {MessageKind::signal, *submission.signal, submission.signal_bytes, transfer}))
    return transfer->signal_ended(peer->down_error());
  peer->message_rail().worker().attend(peer->message_rail(), peer);
}

void EngineState::transfer_ends(TransferState& transfer) {
  admission_.leave();
  const Submission& submission = transfer.submission();
  for (const std::size_t rail : transfer.rails())
    rails_[rail]->queued_bytes(submission.priority) -= submission.bytes / transfer.rails().size();
}

void EngineState::transfer_ended(TransferState& transfer) {
  if (ledger_) ledger_->enter(transfer);
  const Submission& submission = transfer.submission();
  if (submission.waiter_takes_part) inline_copy_.close(transfer);
  if (submission.verify) checks_.end(transfer);
  if (transfer.state() == State::timed_out) leave_silent_rails(transfer);
  // Whoever expects the signal must not wait for what won't come.
  if (transfer.signal_withheld() && transfer.peer().up()) {
    const auto error = transfer.error();
    control_->send(transfer.peer().link,
                   SignalFailed{*submission.signal, error->code(), error->message()});
  }
  if (submission.event)
    events_.push({Event::Kind::transfer_ended,
                  submission.cookie,
                  transfer.state(),
                  transfer.peer().introduction.name,
                  transfer.error(),
                  {}});
}

/// A transfer that came to nothing on a rail within its time tells that the rail may be dead; some
/// providers never say so (efa in libfabric 1.17).
void EngineState::leave_silent_rails(TransferState& transfer) {
  constexpr auto long_enough = std::chrono::seconds(1);
  if (!transfer.peer().up() || transfer.elapsed() < long_enough) return;
  for (const std::size_t rail : transfer.schedulers()) {
    if (!rails_[rail]->capability().path_failures) continue;
    rails_[rail]->worker().post(
        [rail = rails_[rail].get(), transfer = transfer.shared_from_this()] {
          rail->scheduler().timed_out(*transfer);
        });
  }
}

/// What NICs have brought into a device's memory here.
bool EngineState::hides_arrivals(const TransferState& transfer) const {
  const PreparedState& prepared = transfer.prepared();
  const bool by_nic = transfer.submission().transport == TransportKind::one_sided;
  return by_nic && prepared.direction == Direction::read && prepared.local->device().needs_flush();
}

Result<void> EngineState::make_visible(const TransferState& transfer) {
  return transfer.prepared().local->device().flush();
}

void EngineState::memory_let_go(TransferState& transfer) {
  transfer.prepared().local->users().leave();
  transfer.prepared().remote->users().leave();
}

}  // namespace weft::core
