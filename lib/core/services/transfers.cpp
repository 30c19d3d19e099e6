#include "services/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "base/thread.hpp"
#include "control/plane.hpp"
#include "device/event.hpp"
#include "path/copies.hpp"
#include "path/describe.hpp"

namespace weft::core {
namespace {

// Bytes that are under way on a rail while a thread that waits makes its steps.
constexpr std::uint64_t most_driven = std::uint64_t{64} << 10;
// A caller that polls may have others to look at.
constexpr auto longest_look = std::chrono::microseconds(50);

}  // namespace

Transfers::Transfers(const Around& around)
    : around_(around),
      admission_(around_.config.max_transfers),
      inline_copy_({.most_bytes = around_.config.inline_copy_bytes,
                    .caller_drives = around_.config.progress == Progress::manual,
                    .trusts_reads = around_.hooks.trusts_reads},
                   around_.rails) {}

Result<std::shared_ptr<const PreparedState>> Transfers::prepare(
    const std::shared_ptr<SegmentState>& local, const std::shared_ptr<RemoteState>& remote,
    Direction direction, PieceList pieces, bool contact) {
  const GrantDescription& grant = remote->description();
  const Rights needed = direction == Direction::write ? Rights::write : Rights::read;
  if (!includes(grant.rights, needed))
    return fail(
        Error(Code::permission_denied, fmt::format("the grant does not allow to {}",
                                                   needed == Rights::write ? "write" : "read"))
            .with_peer(grant.engine));
  if (!around_.owner.owns(*local))
    return fail(Code::invalid_argument, "the local segment is another engine's");
  if (direction == Direction::read && local->read_only())
    return fail(Code::permission_denied, "the local memory is read-only: nothing is read into it");
  if (auto own = around_.owner.check_own(*remote->peer()); !own)
    return fail(std::move(own.error()));
  auto bytes =
      check_pieces(pieces, {local->size(), grant.ranges, local->block_bytes(), grant.block_bytes});
  if (!bytes) return fail(std::move(bytes.error()));
  const std::uint64_t block = std::max(local->block_bytes(), grant.block_bytes);
  if (auto registered = around_.segments.register_touched(*local, pieces); !registered)
    return fail(std::move(registered.error()));
  const std::uint32_t losses = losses_of(*local, *remote);  // before it is seen what is lost
  const auto rails = around_.paths.rails_for(*local, *remote);
  if (!rails) return fail(rails.error());
  auto set = around_.paths.rails_between(*rails);
  if (!set) return fail(std::move(set.error()));
  if (auto fits = check_block(block, **set, *remote->peer()); !fits)
    return fail(std::move(fits.error()));
  auto prepared = std::make_shared<PreparedState>();
  prepared->engine = around_.owner.handle;
  prepared->rail_names = around_.rails.names();
  prepared->predictor = inline_copy_.predictor();
  prepared->path = std::move(*set);
  prepared->contact = contact;
  prepared->staged = !rails->direct;
  prepared->mapped = rails->mapping.mapped;
  prepared->losses = losses;
  prepared->local = local;
  prepared->remote = remote;
  prepared->direction = direction;
  prepared->pieces = std::move(pieces);
  prepared->bytes = *bytes;
  prepared->block = block;
  if (Paths::between_gpus(*local, *remote)) {
    if (auto lent = around_.paths.borrow(*local, *remote))
      prepared->lent = *lent;
    else
      prepared->not_lent = lent.error().message();
  }
  if (auto found = look_at_reach(*prepared); !found) return fail(std::move(found.error()));
  return std::shared_ptr<const PreparedState>(std::move(prepared));
}

/// Whether bounce buffers hold one of a file's. Those of a rail may be smaller than configured, by
/// the longest message that its NIC takes.
Result<void> Transfers::check_block(std::uint64_t block, const RailSet& set,
                                    const PeerState& peer) {
  if (block == 1) return {};
  const std::uint64_t theirs = peer.introduction.bounce_buffer_bytes;
  for (const std::size_t each : set.rails()) {
    const Rail& rail = *set.of(each)->route->rail;
    if (block <= std::min(rail.bounce_buffer_bytes(), theirs)) continue;
    return fail(Error(Code::invalid_argument,
                      fmt::format("a file is checked in blocks of {} bytes, and a bounce buffer "
                                  "(bounce_buffer_bytes) holds {} here and {} there",
                                  block, rail.bounce_buffer_bytes(), theirs))
                    .with_peer(peer.introduction.name)
                    .with_rail(rail.name()));
  }
  return {};
}

/// Where no NIC has to reach the memory it does not matter which do.
Result<void> Transfers::look_at_reach(PreparedState& prepared) {
  if (prepared.staged) return {};
  auto reach = find_reach(prepared.pieces, *prepared.path, *prepared.local, *prepared.remote);
  if (reach) {
    prepared.reach = std::move(*reach);
    return {};
  }
  reach.error().with_peer(prepared.remote->description().engine);
  if (prepared.lent == nullptr) return fail(std::move(reach.error()));
  prepared.out_of_reach = std::make_unique<const Error>(std::move(reach.error()));
  return {};
}

Result<void> Transfers::check_submission(const PreparedState& prepared,
                                         const TransferOptions& options, Clock::time_point now) {
  const PeerState& peer = *prepared.remote->peer();
  if (!around_.owner.owns(*prepared.local))
    return fail(Code::invalid_argument, "the list was prepared by another engine");
  if (!peer.up()) return fail(peer.down_error());
  if (now >= prepared.remote->expires()) return fail(prepared.remote->expired_error());
  if (options.priority < Priority::latency || options.priority > Priority::bulk)
    return fail(Code::invalid_argument, "there is no such priority");
  if (around_.paths.has_policies() || options.policy)
    if (auto kept = around_.paths.check_policies(prepared, options); !kept) return kept;
  if (options.event && around_.events.size() >= around_.config.max_transfers)
    return fail(Code::queue_full,
                fmt::format("{} events wait to be polled", around_.config.max_transfers));
  if (options.signal) return around_.messages.check_payload(peer, options.signal->bytes.size());
  return {};
}

/// One of Config::max_transfers, for which the caller may want to wait. transfer_ends() leaves it.
Result<void> Transfers::admit(const TransferOptions& options) {
  if (admission_.enter()) return {};
  // A progress thread can't wait for what it has to do itself.
  const bool waits = options.wait_for_room.has_value() && !InCallback::now();
  bool entered = false;
  const auto ended = [&](Deadline until) {
    return (entered = admission_.enter(until)) || around_.gate.closing();
  };
  if (waits) around_.workers.wait(ended, *options.wait_for_room);
  if (entered) return {};
  if (around_.gate.closing()) return fail(Code::closed, "the engine is closed");
  const char* more = waits                   ? ", and none has ended in time"
                     : options.wait_for_room ? ", and a callback can't wait for room"
                                             : "";
  return fail(Code::queue_full, fmt::format("{} transfers are under way already{}",
                                            around_.config.max_transfers, more));
}

/// What has happened already need not be waited for.
Result<void> Transfers::look_at_event(TransferOptions& options) const {
  const auto happened = event_happened(options.after_gpu_event);
  if (!happened) return fail(happened.error());
  if (*happened) options.after_gpu_event = nullptr;
  return {};
}

Result<TransportKind> Transfers::transport_for(const PreparedState& prepared,
                                               const TransferOptions& options) const {
  const TransportKind asked = around_.paths.transport_asked(options);
  const bool refused = asked == TransportKind::device_copy
                           ? prepared.lent == nullptr
                           : asked == TransportKind::one_sided && prepared.staged;
  if (refused) {
    const auto& path = around_.paths.known(prepared, asked).path;
    if (!path) return fail(Error(path.error()).with_peer(prepared.remote->description().engine));
  }
  const bool copies = asked == TransportKind::automatic && prepared.lent != nullptr;
  if (copies || asked == TransportKind::device_copy) return TransportKind::device_copy;
  if (prepared.staged) return TransportKind::bounce;
  if (asked == TransportKind::bounce) return asked;
  if (prepared.out_of_reach) return fail(*prepared.out_of_reach);
  return TransportKind::one_sided;
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

Result<std::shared_ptr<Submitted>> Transfers::submit(const std::shared_ptr<SegmentState>& local,
                                                     const std::shared_ptr<RemoteState>& remote,
                                                     Direction direction, PieceList pieces,
                                                     TransferOptions&& options) {
  return prepare(local, remote, direction, std::move(pieces))
      .and_then([&](const std::shared_ptr<const PreparedState>& prepared) {
        return submit_prepared(prepared, std::nullopt, std::move(options));
      });
}

Result<std::shared_ptr<Submitted>> Transfers::contact(const std::shared_ptr<SegmentState>& local,
                                                      const std::shared_ptr<RemoteState>& remote,
                                                      TransferOptions&& options) {
  const GrantDescription& grant = remote->description();
  const bool writes = includes(grant.rights, Rights::write);
  const Pair nothing{0, grant.ranges.front().offset, 0};
  return prepare(local, remote, writes ? Direction::write : Direction::read,
                 PieceList(std::span(&nothing, 1)), true)
      .and_then([&](const std::shared_ptr<const PreparedState>& prepared) {
        return submit_prepared(prepared, std::nullopt, std::move(options));
      });
}

/// What is asked for, if it can be done. An event that has happened need not be waited for.
Result<TransferShape> Transfers::shape_of(const PreparedState& prepared, const Picks& picks,
                                          TransferOptions& options, Clock::time_point now) {
  if (auto checked = check_submission(prepared, options, now); !checked)
    return fail(std::move(checked.error()));
  const auto bytes = bytes_of(prepared, picks);
  if (!bytes) return fail(bytes.error());
  if (options.after_gpu_event != nullptr)
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
                       .contact = prepared.contact,
                       .parted = *transport == TransportKind::one_sided && prepared.reach.parted(),
                       .followed = options.signal || options.verify,
                       .event = options.event,
                       .waits = options.after_gpu_event != nullptr};
}

Transfers::Loads Transfers::loads_of(const RailSet& set, Priority priority,
                                     Clock::time_point now) const {
  Loads loads;
  const auto& rails = set.rails();
  for (const std::size_t index : rails) {
    RailLoad load{.rail = index};
    if (rails.size() > 1) {
      const Rail& rail = *around_.rails[index];
      load.aside = set.of(index)->route->is_aside(now) || rail.away();
      load.queued = rail.queued_before(priority);
      load.in_flight = rail.counters().in_flight.load(std::memory_order_relaxed);
    }
    loads.push_back(load);
  }
  return loads;
}

Result<std::shared_ptr<Submitted>> Transfers::submit_prepared(
    const std::shared_ptr<const PreparedState>& prepared, const Picks& picks,
    TransferOptions&& options) {
  const auto now = Clock::now();
  auto shape = shape_of(*prepared, picks, options, now);
  if (!shape) return fail(std::move(shape.error()));
  if (auto taken = admit(options); !taken) return fail(std::move(taken.error()));
  AdmissionSlot slot(admission_);
  Entered local(prepared->local->users()), remote(prepared->remote->users().enter());
  if (around_.gate.closing()) return fail(Code::closed, "the engine is closed");
  if (!local) return fail(Code::closed, "the local segment is being released");
  if (!remote) return fail(prepared->remote->ended_error());
  // The time for which it waited for room is not its own.
  const auto begun = options.wait_for_room ? Clock::now() : now;
  const auto deadline =
      options.deadline.value_or(Deadline::in(around_.config.default_timeout, begun)).when();
  const auto lease_end = prepared->remote->expires();

  // By the caller itself, or over which rails: see placement.hpp.
  shape->in_time = begun < std::min(deadline, lease_end);
  Caller caller = inline_copy_.caller(*shape, admission_);
  const Rail& first = *around_.rails[prepared->path->rails().front()];
  caller.drives_rail = first.worker().driven(now);
  const auto copied = inline_copy_.submit(*shape, first.plan(), caller,
                                          {*prepared, picks, now, std::min(deadline, lease_end)});
  if (copied && is_over(*prepared, *shape, *copied)) {
    inline_copy_.ended_unseen(*shape, now);
    return ended_inline(
        {prepared, shape->pieces, shape->priority, now, {}, copied->rail, copied->copied}, options,
        slot);
  }
  Loads loads = loads_of(*prepared->path, shape->priority, now);
  const Placement placement = place(*shape, first.plan(), caller, loads);

  Submission submission(now);
  submission.prepared = prepared;
  submission.bytes = shape->bytes;
  submission.transport = shape->transport;
  submission.waiter_takes_part = placement.waiters_help;
  submission.deadline = deadline;
  submission.trusted = around_.hooks.trusts_reads;
  if (picks) submission.picks.emplace(picks->begin(), picks->end());
  submission.take(std::move(options));
  submission.local_use = std::move(local);
  submission.remote_use = std::move(remote);
  slot.keep();
  auto transfer = std::make_shared<TransferState>(std::move(submission), *this);
  start(*transfer, placement, std::span(loads).first(placement.rails));
  if (copied) transfer->copied_inline(copied->rail, copied->copied);
  if (copied && transfer->ended()) {
    inline_copy_.ended_unseen(*shape, now);
    inline_copy_.at_hand(*transfer);
  } else if (!placement.posted_inline || !post_inline(transfer, begun)) {
    offer(transfer);
  }
  return transfer;
}

void Transfers::start(TransferState& transfer, const Placement& placement,
                      std::span<const RailLoad> chosen) {
  SmallVector<std::size_t, 32> rails;
  for (const RailLoad& load : chosen) rails.push_back(load.rail);
  const Submission& submission = transfer.submission();
  for (const std::size_t rail : rails)
    around_.rails[rail]->queued_bytes(submission.priority) += submission.bytes / rails.size();
  transfer.start(std::span(rails), {placement.part, placement.even});
}

/// The calling thread posts it, and watches it while it is on its way. False: it is to be offered.
bool Transfers::post_inline(const std::shared_ptr<TransferState>& transfer, Clock::time_point now) {
  Rail& rail = *around_.rails[transfer->rails().front()];
  if (!rail.worker().begin(rail, transfer, now)) return false;
  if (!transfer->ended()) rail.worker().watch(transfer);
  return true;
}

/// To the threads of its rails, and to those that wait for it.
void Transfers::offer(const std::shared_ptr<TransferState>& transfer) {
  if (transfer->submission().waiter_takes_part) inline_copy_.open(transfer);
  // Watched before it is offered: a thread that carries it may be stuck, and the transfer
  // would outlive its deadline.
  const std::span<const std::uint32_t> rails = transfer->rails();
  Worker& first = around_.rails[rails.front()]->worker();
  first.watch(transfer);
  if (transfer->waits()) return first.park(transfer);
  for (const std::size_t rail : rails)
    around_.rails[rail]->worker().offer(*around_.rails[rail], transfer);
  inline_copy_.at_hand(*transfer);
}

/// Whether all its bytes are in their place, for everybody to see, and nothing follows.
bool Transfers::is_over(const PreparedState& prepared, const TransferShape& shape,
                        const InlineCopy::Done& done) const {
  if (done.copied.bytes < shape.bytes || shape.followed) return false;
  if (prepared.direction == Direction::read)
    return done.copied.proven && !prepared.local->device().needs_flush();
  return around_.rails[done.rail]->capability().proof == CompletionProof::visible;
}

/// The caller has copied all of it. It leaves its slot before its end is told.
std::shared_ptr<Submitted> Transfers::ended_inline(CopiedTransfer::Facts facts,
                                                   const TransferOptions& options,
                                                   AdmissionSlot& slot) {
  facts.ended = Clock::now();
  auto transfer = std::make_shared<CopiedTransfer>(std::move(facts), *this);
  if (around_.ledger) around_.ledger->enter(*transfer);
  slot.leave();
  if (options.event)
    around_.events.push({Event::Kind::transfer_ended, options.cookie, State::done,
                         transfer->prepared().remote->peer()->introduction.name, std::nullopt});
  if (options.on_end) {
    const InCallback here;
    options.on_end({State::done, options.cookie, nullptr});
  }
  return transfer;
}

/// A call of the application's, for which closing waits.
void Transfers::take_part(TransferState& transfer, Deadline deadline) {
  if (InCallback::now()) return;
  const CallGate::Call call(around_.gate);
  if (call.refused()) return;
  if (transfer.submission().waiter_takes_part) inline_copy_.help(transfer, deadline);
  Rail& rail = *around_.rails[transfer.rails().front()];
  if (rail.queued_before(Priority::bulk) > most_driven) {
    // The rails' threads do each its part, while this one sleeps. One that polls leaves its core to
    // them where they copy.
    if (!deadline.passed()) return;
    if (rail.plan().maps_memory) {
      std::ignore = transfer.wait_ended(Deadline::in(longest_look));
      return;
    }
  }
  around_.workers.drive(
      rail.worker(), [&] { return transfer.ended(); }, deadline);
}

void Transfers::offer_again(const std::shared_ptr<TransferState>& transfer) {
  for (const std::size_t rail : transfer->carriers())
    around_.rails[rail]->worker().offer(*around_.rails[rail], transfer);
}

void Transfers::verify(const std::shared_ptr<TransferState>& transfer) {
  around_.checks.start(transfer);
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
    around_.rails[rail]->queued_bytes(submission.priority) -=
        submission.bytes / transfer.rails().size();
}

void Transfers::transfer_ended(TransferState& transfer) {
  if (around_.ledger) around_.ledger->enter(transfer);
  const Submission& submission = transfer.submission();
  if (submission.waiter_takes_part) inline_copy_.close(transfer);
  if (submission.verify) around_.checks.end(transfer);
  if (transfer.state() == State::timed_out) leave_silent_rails(transfer);
  // An expectation of the signal must not wait for what won't come.
  if (transfer.signal_withheld() && transfer.peer().up()) {
    const auto error = transfer.error();
    around_.control->send(transfer.peer().link,
                          SignalFailed{*submission.signal, error->code(), error->message(),
                                       transfer.prepared().direction == Direction::read,
                                       transfer.tally().bytes_done});
  }
  if (submission.event)
    around_.events.push({Event::Kind::transfer_ended,
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
    if (!around_.rails[rail]->capability().path_failures) continue;
    around_.rails[rail]->worker().post(
        [rail = around_.rails[rail], transfer = transfer.shared_from_this()] {
          rail->scheduler().timed_out(*transfer);
        });
  }
}

void Transfers::enter_copies(const PreparedState& prepared, std::uint64_t own, Report& report) {
  const CallGate::Call call(around_.gate);  // rails stay
  if (call.refused()) return report.copied.push_back({});
  const auto& known = around_.paths.known(prepared, report.transport).path;
  if (!known) return report.copied.push_back({});
  report.copied = copies_on(*known, report.bytes_done, own);
}

}  // namespace weft::core
