#include "engine/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <span>

#include "base/callback.hpp"
#include "device/event.hpp"
#include "path/copies.hpp"
#include "path/describe.hpp"
#include "peer/pairing.hpp"

namespace weft::core {
namespace {

std::string why_no_key(const std::string& in_the_owners_words) {
  const std::string none = "none of the peer's rails has a key for it";
  return in_the_owners_words.empty() ? none : fmt::format("{}: {}", none, in_the_owners_words);
}

}  // namespace

Transfers::Transfers(const Around& around)
    : config_(around.config),
      hooks_(around.hooks),
      owner_(around.owner),
      gate_(around.gate),
      rails_(around.rails),
      workers_(around.workers),
      paths_(around.paths),
      messages_(around.messages),
      checks_(around.checks),
      events_(around.events),
      ledger_(around.ledger),
      control_(around.control),
      admission_(config_.max_transfers),
      attention_(std::make_shared<Attention>(at_once_if_waited_for())) {}

Result<std::shared_ptr<const PreparedState>> Transfers::prepare(
    const std::shared_ptr<SegmentState>& local, const std::shared_ptr<RemoteState>& remote,
    Direction direction, PieceList pieces) {
  const GrantDescription& grant = remote->description();
  const Rights needed = direction == Direction::write ? Rights::write : Rights::read;
  if (!includes(grant.rights, needed))
    return fail(
        Error(Code::permission_denied, fmt::format("the grant does not allow to {}",
                                                   needed == Rights::write ? "write" : "read"))
            .with_peer(grant.engine));
  if (!owner_.owns(*local))
    return fail(Code::invalid_argument, "the local segment is another engine's");
  if (auto own = owner_.check_own(*remote->peer()); !own) return fail(std::move(own.error()));
  auto bytes = check_pieces(pieces, {local->size(), grant.ranges});
  if (!bytes) return fail(std::move(bytes.error()));
  const std::uint32_t losses = losses_of(*local, *remote);  // before it is seen what is lost
  const auto rails = paths_.rails_for(*local, *remote);
  if (!rails) return fail(rails.error());
  auto set = paths_.rails_between(*rails);
  if (!set) return fail(std::move(set.error()));
  auto prepared = std::make_shared<PreparedState>();
  prepared->engine = owner_.handle;
  prepared->rail_names = rails_.names();
  prepared->attention = attention_;
  prepared->path = std::move(*set);
  prepared->staged = !rails->direct;
  prepared->mapped = rails->mapping.mapped;
  prepared->losses = losses;
  prepared->local = local;
  prepared->remote = remote;
  prepared->direction = direction;
  prepared->pieces = std::move(pieces);
  prepared->bytes = *bytes;
  if (Paths::between_gpus(*local, *remote)) {
    if (auto lent = paths_.borrow(*local, *remote))
      prepared->lent = *lent;
    else
      prepared->not_lent = lent.error().message();
  }
  return std::shared_ptr<const PreparedState>(std::move(prepared));
}

bool Paths::between_gpus(const SegmentState& local, const RemoteState& remote) {
  return local.place().kind == MemoryKind::device &&
         remote.description().place.kind == MemoryKind::device;
}

/// Between GPUs: where the remote memory lies for copies by the local one. May block the first
/// time.
Result<std::byte*> Paths::borrow(const SegmentState& local, const RemoteState& remote) const {
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
Result<Paths::RailsBetween> Paths::rails_for(const SegmentState& local,
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
  const auto beyond = std::stable_partition(rails.ours.begin(), rails.ours.end(),
                                            [&](auto rail) { return local.reached_by(rail); });
  const auto their_beyond =
      std::stable_partition(rails.theirs.begin(), rails.theirs.end(),
                            [&](auto rail) { return remote.reachable_on(rail); });
  const bool ours = beyond != rails.ours.begin(), theirs = their_beyond != rails.theirs.begin();
  rails.direct = ours && theirs;
  if (!ours) rails.why_local_staged = local.why_staged(rails.ours.front());
  if (!theirs) rails.why_remote_staged = why_no_key(remote.why_bounced(rails.theirs.front()));
  if (rails.direct) {
    rails.ours.erase(beyond, rails.ours.end());
    rails.theirs.erase(their_beyond, rails.theirs.end());
  }
  rails.mapping = mapping_of(rails, local, remote);
  if (rails.mapping.mapped && config_.rails == 0 &&
      rails_[rails.ours.front()]->capability().best_mapped_by_one) {
    rails.ours.resize(1);
    rails.theirs.resize(1);
  }
  return rails;
}

/// Over these, each by those of the other side's that it is paired with.
Result<std::shared_ptr<RailSet>> Paths::rails_between(const RailsBetween& rails) const {
  PeerState& peer = *rails.peer;
  const RailSets::Rails &ours = rails.ours, &theirs = rails.theirs;
  return peer.rail_sets.between(ours, theirs, [&]() -> Result<std::shared_ptr<RailSet>> {
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
        if (rails_.keeps_to_one(route.rail->capability())) break;
      }
      if (route.rail->capability().proof != CompletionProof::visible)
        use.proofs = use.targets.size();
      set->add(paired.own, std::move(use));
    }
    return set;
  });
}

Result<void> Transfers::check_submission(const PreparedState& prepared,
                                         const TransferOptions& options, Clock::time_point now) {
  const PeerState& peer = *prepared.remote->peer();
  if (!owner_.owns(*prepared.local))
    return fail(Code::invalid_argument, "the list was prepared by another engine");
  if (!peer.up()) return fail(peer.down_error());
  if (now >= prepared.remote->expires()) return fail(prepared.remote->expired_error());
  if (options.priority < Priority::latency || options.priority > Priority::bulk)
    return fail(Code::invalid_argument, "there is no such priority");
  if (paths_.has_policies() || options.policy)
    if (auto kept = paths_.check_policies(prepared, options); !kept) return kept;
  if (options.event && events_.size() >= config_.max_transfers)
    return fail(Code::queue_full,
                fmt::format("{} events wait to be polled", config_.max_transfers));
  if (options.signal) return messages_.check_payload(peer, options.signal->bytes.size());
  return {};
}

/// One of Config::max_transfers, for which the caller may want to wait. transfer_ends() leaves it.
Result<void> Transfers::admit(const TransferOptions& options) {
  if (admission_.enter()) return {};
  // A progress thread can't wait for what it has to do itself.
  const bool waits = options.wait_for_room.has_value() && !InCallback::now();
  bool entered = false;
  const auto ended = [&](Deadline until) {
    return (entered = admission_.enter(until)) || gate_.closing();
  };
  if (waits) workers_.wait(ended, *options.wait_for_room);
  if (entered) return {};
  if (gate_.closing()) return fail(Code::closed, "the engine is closed");
  const char* more = waits                   ? ", and none has ended in time"
                     : options.wait_for_room ? ", and a callback can't wait for room"
                                             : "";
  return fail(Code::queue_full,
              fmt::format("{} transfers are under way already{}", config_.max_transfers, more));
}

bool Transfers::idle(std::span<const std::size_t> rails, Priority priority) const {
  return std::all_of(rails.begin(), rails.end(),
                     [&](std::size_t rail) { return rails_[rail]->queued_before(priority) == 0; });
}

/// How many of those rails so many bytes are worth: one for each chunk's worth, or for less where
/// they meet no other transfer.
std::uint64_t Transfers::rails_wanted(std::span<const std::size_t> all, std::uint64_t bytes,
                                      Priority priority) const {
  const Rail& first = *rails_[all.front()];
  const std::uint64_t chunks = bytes / first.chunk_limit();
  const std::uint64_t part = first.capability().best_part;
  if (chunks > 1 || part == 0) return chunks;
  return idle(all, priority) ? bytes / part : chunks;
}

/// The rails that shall carry so many bytes, those with the least to do. Small transfers keep to
/// one rail until it has enough, since each rail in use takes a core on both sides; unless somebody
/// waits for them. `several` holds them where they are more than one.
std::span<const std::size_t> Transfers::choose_rails(const RailSet& set, std::uint64_t bytes,
                                                     Priority priority, Clock::time_point now,
                                                     std::vector<std::size_t>& several) const {
  const std::span all(set.rails());
  if (all.size() == 1) return all;
  Rail& first = *rails_[all.front()];
  const std::uint64_t share = std::max<std::uint64_t>(1, first.capability().best_share);
  // Those that were set aside only if there is nothing else; by what they have to do, in steps of
  // what is worth another rail; what is urgent by what is in flight, which it can't overtake.
  struct Load {
    bool aside;
    std::uint64_t queued, ahead;
    std::size_t rail;
    auto operator<=>(const Load&) const = default;
  };
  const auto load_of = [&](std::size_t rail) -> Load {
    const bool aside = set.of(rail)->route->is_aside(now) || rails_[rail]->away();
    const std::uint64_t ahead =
        priority == Priority::latency ? rails_[rail]->counters().in_flight.load() : 0;
    return {aside, rails_[rail]->queued_before(priority) / share, ahead, rail};
  };
  const std::uint64_t wanted = rails_wanted(all, bytes, priority);
  if (wanted <= 1) {
    std::size_t best = 0;
    Load least = load_of(all.front());
    for (std::size_t i = 1; i < all.size(); ++i)
      if (const Load load = load_of(all[i]); load < least) {
        best = i;
        least = load;
      }
    return all.subspan(best, 1);
  }
  std::vector<Load> loads;
  loads.reserve(all.size());
  for (const std::size_t rail : all) loads.push_back(load_of(rail));
  std::sort(loads.begin(), loads.end());
  const auto aside =
      std::find_if(loads.begin(), loads.end(), [](const Load& load) { return load.aside; });
  if (aside != loads.begin()) loads.erase(aside, loads.end());
  for (const Load& load : std::span(loads).first(std::min<std::size_t>(wanted, loads.size())))
    several.push_back(load.rail);
  return several;
}

/// Under manual progress: what is small goes out before submit() returns, and is watched while it
/// is on its way, since no NIC's provider blocks. False: it is to be offered.
bool Transfers::begin_at_once(const std::shared_ptr<TransferState>& transfer,
                              Clock::time_point now) {
  const Submission& submission = transfer->submission();
  const bool by_device =
      transfer->prepared().staged || submission.transport == TransportKind::device_copy;
  if (config_.progress != Progress::manual || transfer->rails().size() != 1 || by_device ||
      transfer->waits() || submission.bytes > always_at_once(submission.priority) ||
      InCallback::now())
    return false;
  Rail& rail = *rails_[transfer->rails().front()];
  if (!workers_.begin(rail, transfer, now)) return false;
  if (!transfer->ended()) rail.worker().watch(transfer);
  return true;
}

/// What has happened already need not be waited for.
Result<void> Transfers::look_at_event(TransferOptions& options) const {
  const auto happened = cuda_event_happened(options.after_cuda_event);
  if (!happened) return fail(happened.error());
  if (*happened) options.after_cuda_event = nullptr;
  return {};
}

Result<TransportKind> Transfers::transport_for(const PreparedState& prepared,
                                               const TransferOptions& options) const {
  const TransportKind asked = paths_.transport_asked(options);
  const bool refused = asked == TransportKind::device_copy
                           ? prepared.lent == nullptr
                           : asked == TransportKind::one_sided && prepared.staged;
  if (refused) {
    const auto& path = paths_.known(prepared, asked).path;
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

Result<std::shared_ptr<Submitted>> Transfers::submit(
    const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
    TransferOptions&& options) {
  if (prepared->losses == losses_of(*prepared->local, *prepared->remote))
    return submit_prepared(prepared, picks, std::move(options));
  return prepare(prepared->local, prepared->remote, prepared->direction, prepared->pieces)
      .and_then([&](const std::shared_ptr<const PreparedState>& anew) {
        return submit_prepared(anew, picks, std::move(options));
      });
}

Result<std::shared_ptr<Submitted>> Transfers::submit_prepared(
    const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
    TransferOptions&& options) {
  const auto now = Clock::now();
  if (auto checked = check_submission(*prepared, options, now); !checked)
    return fail(std::move(checked.error()));
  const auto bytes = bytes_of(*prepared, picks);
  if (!bytes) return fail(bytes.error());
  if (options.after_cuda_event != nullptr)
    if (auto waits = look_at_event(options); !waits) return fail(std::move(waits.error()));
  const auto transport = transport_for(*prepared, options);
  if (!transport) return fail(transport.error());
  if (auto taken = admit(options); !taken) return fail(std::move(taken.error()));
  AdmissionSlot slot(admission_);
  Entered local(prepared->local->users()), remote(prepared->remote->users());
  if (gate_.closing()) return fail(Code::closed, "the engine is closed");
  if (!local) return fail(Code::closed, "the local segment is being released");
  if (!remote) return fail(prepared->remote->ended_error());
  // The time for which it waited for room is not its own.
  const auto begun = options.wait_for_room ? Clock::now() : now;
  const auto deadline = options.deadline.value_or(Deadline::in(config_.default_timeout, begun));
  const Asked asked{prepared, picks, options, *transport, *bytes, now, begun, deadline.when()};
  std::optional<AtOnce> copied;
  if (at_once(asked)) {
    copied = copy_at_once(asked);
    if (is_over(asked, *copied)) return ended_at_once(asked, *copied, slot);
  }

  std::vector<std::size_t> several;
  const auto rails = choose_rails(*prepared->path, *bytes, options.priority, now, several);
  Submission submission(now);
  submission.bytes = *bytes;
  submission.transport = *transport;
  submission.waiter_takes_part = waiter_may_copy(asked, rails);
  submission.deadline = asked.deadline;
  submission.lease_end = prepared->remote->expires();
  submission.trusted = hooks_.trusts_reads;
  if (picks) submission.picks.emplace(picks->begin(), picks->end());
  submission.take(std::move(options));
  submission.local_use = std::move(local);
  submission.remote_use = std::move(remote);
  slot.keep();
  const Priority priority = submission.priority;
  submission.prepared = prepared;
  auto transfer = std::make_shared<TransferState>(std::move(submission), *this);
  const TransferState::Parts parts{(*bytes + rails.size() - 1) / rails.size(),
                                   rails.size() > 1 && idle(rails, priority)};
  for (const std::size_t rail : rails)
    rails_[rail]->queued_bytes(priority) += *bytes / rails.size();
  transfer->start(rails, parts);
  if (copied) transfer->copied_at_once(copied->rail, copied->copied);
  if (copied && transfer->ended()) {
    ended_unseen(asked);
    if (*bytes > at_once_if_waited_for()) transfer->at_hand();
    return transfer;
  }
  if (begin_at_once(transfer, begun)) return transfer;
  if (transfer->submission().waiter_takes_part) {
    // Each thread begins with a half of its own, so that its bytes stay in its core's cache.
    if (*bytes > config_.inline_copy_bytes) transfer->halve();
    open_to_waiters_.add(transfer);
  }
  // Watched before it is offered: whoever carries it may be stuck, and one that nobody watches
  // would outlive its deadline.
  rails_[rails.front()]->worker().watch(transfer);
  if (transfer->waits()) {
    rails_[rails.front()]->worker().park(transfer);
    return transfer;
  }
  bool led = false;
  for (const std::size_t rail : rails) {
    Worker& worker = rails_[rail]->worker();
    worker.offer(*rails_[rail], transfer);
    led = led || worker.waits_for_caller(*rails_[rail]);
  }
  if (led) workers_.lead(now);
  if (*bytes > at_once_if_waited_for()) transfer->at_hand();
  return transfer;
}

void Transfers::offer_again(const std::shared_ptr<TransferState>& transfer) {
  for (const std::size_t rail : transfer->carriers())
    rails_[rail]->worker().offer(*rails_[rail], transfer);
}

void Transfers::verify(const std::shared_ptr<TransferState>& transfer) {
  checks_.start(transfer);
}

void Transfers::raise_signal(const std::shared_ptr<TransferState>& transfer) {
  const Submission& submission = transfer->submission();
  const auto& peer = transfer->prepared().remote->peer();
  if (!peer->outbox.push_unbounded(
          {MessageKind::signal, *submission.signal, submission.signal_bytes, transfer}))
    return transfer->signal_ended(peer->down_error());
  peer->message_rail().worker().attend(peer->message_rail(), peer);
}

void Transfers::transfer_ends(TransferState& transfer) {
  admission_.leave();
  const Submission& submission = transfer.submission();
  for (const std::size_t rail : transfer.rails())
    rails_[rail]->queued_bytes(submission.priority) -= submission.bytes / transfer.rails().size();
}

void Transfers::transfer_ended(TransferState& transfer) {
  if (ledger_) ledger_->enter(transfer);
  const Submission& submission = transfer.submission();
  if (submission.waiter_takes_part) open_to_waiters_.remove(transfer);
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
void Transfers::leave_silent_rails(TransferState& transfer) {
  constexpr auto long_enough = std::chrono::seconds(1);
  if (!transfer.peer().up() || transfer.elapsed() < long_enough) return;
  for (const std::size_t rail : transfer.carriers()) {
    if (!rails_[rail]->capability().path_failures) continue;
    rails_[rail]->worker().post([rail = rails_[rail], transfer = transfer.shared_from_this()] {
      rail->scheduler().timed_out(*transfer);
    });
  }
}

void Transfers::enter_copies(const PreparedState& prepared, std::uint64_t own, Report& report) {
  const CallGate::Call call(gate_);  // rails stay
  if (call.refused()) return report.copied.push_back({});
  const auto& known = paths_.known(prepared, report.transport).path;
  if (!known) return report.copied.push_back({});
  report.copied = copies_on(*known, report.bytes_done, own);
}

}  // namespace weft::core
