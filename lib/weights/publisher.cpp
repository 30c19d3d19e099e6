// A rank of the publisher group: it writes what the leader's plan gives it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <weft/weights.hpp>

#include "base/log.hpp"
#include "weights/leader.hpp"
#include "weights/member.hpp"
#include "weights/names.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// For what was posted to come to its end after a step was void, beyond the deadline. A guess.
constexpr auto drain_time = 1s;

std::vector<Pair> pairs_of(std::span<const Piece> pieces) {
  std::vector<Pair> pairs;
  for (const Piece& piece : pieces)
    for (std::uint64_t i = 0; i < piece.count; ++i)
      pairs.push_back({piece.src_offset + i * piece.src_stride,
                       piece.dst_offset + i * piece.dst_stride, piece.length});
  return pairs;
}

}  // namespace

class Publisher::State final : private Role {
 public:
  State(Engine& engine, Rank self, Segments segments, PublisherOptions options)
      : self_(std::move(self)),
        segments_(std::move(segments)),
        options_(std::move(options)),
        member_(engine),
        leader_(member_, options_.rank == 0 ? "" : options_.leader) {
    if (options_.rank == 0) lead_.emplace(member_, options_.publishers, options_.subscribers);
  }

  Result<void> start() {
    std::vector<Role*> roles{this};
    if (lead_) roles.push_back(&*lead_);
    return member_.start(std::move(roles));
  }
  void stop() { member_.stop(); }

  Result<Published> publish(std::uint64_t step, Deadline deadline);

 private:
  struct Grant {
    ContactPtr from;
    std::uint32_t rank;
    Round round;
  };
  /// What the thread in publish() and the member's thread share.
  struct Call {
    std::uint64_t step = 0;
    bool active = false, asked = false;
    Clock::time_point end = {};
    std::optional<Round> round = {};
    std::optional<Note> outcome = {};
    std::vector<Grant> grants = {};  // that are still to be served; they may come before `begin`
  };

  void hear(const ContactPtr& from, const Note& note) override;
  void lost(const ContactPtr& contact) override;
  Clock::time_point advance(Clock::time_point now) override;
  void begin(const Note& note) WEFT_REQUIRES(mutex_);
  void end(Outcome outcome, std::string why) WEFT_REQUIRES(mutex_);

  std::vector<Grant> next_grants(Deadline deadline);
  Result<void> serve(const Grant& grant, Deadline deadline, std::vector<weft::Transfer>& transfers,
                     std::uint64_t& bytes);
  Result<void> write(const Grant& grant, std::span<const Piece> pieces, Deadline deadline,
                     std::vector<weft::Transfer>& transfers, std::uint64_t& bytes);
  void report(const Round& round, const std::string& why);
  Result<Published> ended(const Call& call, std::vector<weft::Transfer>& transfers,
                          std::uint64_t bytes, Clock::time_point began);

  const Rank self_;
  const Segments segments_;
  const PublisherOptions options_;
  core::Mutex mutex_;
  core::Condition changed_;
  Call call_ WEFT_GUARDED_BY(mutex_);
  std::vector<Send> sends_ WEFT_GUARDED_BY(mutex_);
  Member member_;
  LeaderLink leader_;  // of the member's thread
  std::optional<Leader> lead_;
};

// On the member's thread.

void Publisher::State::hear(const ContactPtr& from, const Note& note) {
  const core::Lock lock(mutex_);
  if (note.kind == NoteKind::granted) {
    call_.grants.push_back({from, note.rank, note.round});
  } else if (!leader_.is(from)) {
    return;
  } else if (note.kind == NoteKind::sends) {
    sends_ = note.sends;
  } else if (note.kind == NoteKind::begin) {
    begin(note);
  } else if (note.kind == NoteKind::outcome && call_.active && call_.step == note.step &&
             (!call_.round || note.round == call_.round || note.round == Round{})) {
    end(note.outcome, note.text);
  }
  changed_.notify_all();
}

void Publisher::State::begin(const Note& note) {
  if (call_.active && !call_.outcome && call_.step == note.step)
    call_.round = note.round;
  else
    member_.send(leader_.contact(), {.kind = NoteKind::failed,
                                     .round = note.round,
                                     .text = "it has given up waiting for the others"});
  std::erase_if(call_.grants, [&](const Grant& each) { return each.round != note.round; });
}

void Publisher::State::end(Outcome outcome, std::string why) {
  if (call_.outcome) return;
  call_.outcome = Note{.kind = NoteKind::outcome, .outcome = outcome, .text = std::move(why)};
}

void Publisher::State::lost(const ContactPtr& contact) {
  if (!leader_.is(contact)) return;
  leader_.lost();
  const core::Lock lock(mutex_);
  if (call_.active && call_.asked)
    end(call_.round ? Outcome::unknown : Outcome::voided, "the leader is gone");
  changed_.notify_all();
}

Clock::time_point Publisher::State::advance(Clock::time_point now) {
  if (leader_.advance(now))
    member_.send(leader_.contact(), {.kind = NoteKind::join,
                                     .rank = options_.rank,
                                     .side = Side::publisher,
                                     .text = member_.engine().address(),
                                     .description = self_});
  const core::Lock lock(mutex_);
  if (leader_.contact() && call_.active && !std::exchange(call_.asked, true)) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(call_.end - now);
    member_.send(
        leader_.contact(),
        {.kind = NoteKind::ready,
         .step = call_.step,
         .rank = options_.rank,
         .microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.count()))});
  }
  return leader_.next();
}

// On the caller's thread.

Result<Published> Publisher::State::publish(std::uint64_t step, Deadline deadline) {
  const auto began = Clock::now();
  {
    const core::Lock lock(mutex_);
    if (call_.active) return fail(Code::invalid_argument, "another call publishes");
    call_.step = step;
    call_.active = true;
    call_.asked = false;
    call_.end = deadline.when();
    call_.round.reset();
    call_.outcome.reset();
  }
  member_.inbox()->post([] {});  // advance() does the rest.
  std::vector<weft::Transfer> transfers;
  std::uint64_t bytes = 0;
  while (true) {
    const auto grants = next_grants(deadline);
    if (grants.empty()) break;
    for (const Grant& grant : grants)
      if (auto served = serve(grant, deadline, transfers, bytes); !served)
        report(grant.round, served.error().to_string());
  }
  Call call;
  {
    const core::Lock lock(mutex_);
    if (!call_.outcome)
      end(call_.round ? Outcome::unknown : Outcome::voided,
          call_.asked ? "the leader did not answer in time" : "the leader was not met in time");
    call = std::exchange(call_, {});
  }
  return ended(call, transfers, bytes, began);
}

/// The grants of this round that came; none when there is nothing more to do.
std::vector<Publisher::State::Grant> Publisher::State::next_grants(Deadline deadline) {
  core::Lock lock(mutex_);
  changed_.wait(mutex_, deadline, [&]() WEFT_REQUIRES(mutex_) {
    return call_.outcome || (call_.round && !call_.grants.empty());
  });
  if (call_.outcome || !call_.round) return {};
  return std::exchange(call_.grants, {});
}

Result<void> Publisher::State::serve(const Grant& grant, Deadline deadline,
                                     std::vector<weft::Transfer>& transfers, std::uint64_t& bytes) {
  std::vector<Piece> pieces;
  {
    const core::Lock lock(mutex_);
    if (grant.round != call_.round) return {};
    for (const Send& send : sends_)
      if (send.to == grant.rank) pieces = send.pieces;
  }
  // Sorted by the two segments: each pair of them is one write.
  for (std::size_t first = 0; first < pieces.size();) {
    std::size_t end = first + 1;
    while (end < pieces.size() && pieces[end].src_segment == pieces[first].src_segment &&
           pieces[end].dst_segment == pieces[first].dst_segment)
      ++end;
    if (auto written =
            write(grant, std::span(pieces).subspan(first, end - first), deadline, transfers, bytes);
        !written)
      return written;
    first = end;
  }
  return {};
}

Result<void> Publisher::State::write(const Grant& grant, std::span<const Piece> pieces,
                                     Deadline deadline, std::vector<weft::Transfer>& transfers,
                                     std::uint64_t& bytes) {
  const std::uint32_t source = pieces.front().src_segment;
  if (source >= segments_.size())
    return fail(Code::invalid_argument, fmt::format("there is no segment {}", source));
  auto remote = member_.engine().lookup(
      *grant.from->peer, grant_name(grant.round, pieces.front().dst_segment), deadline);
  if (!remote) return fail(std::move(remote.error()));
  auto transfer = member_.engine().write(
      *segments_[source], *remote, pairs_of(pieces),
      {.deadline = deadline,
       .signal = Signal{.id = signal_id(grant.round)},
       .on_end =
           [this, round = grant.round, inbox = member_.inbox()](const Ended& ended) {
             if (ended.state == weft::State::done) return;
             const std::string why = ended.error != nullptr ? ended.error->to_string() : "it ended";
             inbox->post([this, round, why] {
               member_.send(leader_.contact(),
                            {.kind = NoteKind::failed, .round = round, .text = why});
             });
           },
       .priority = Priority::bulk,
       .wait_for_room = deadline,
       .verify = options_.verify});
  if (!transfer) return fail(std::move(transfer.error()));
  bytes += transfer->report().bytes;
  transfers.push_back(std::move(*transfer));
  return {};
}

void Publisher::State::report(const Round& round, const std::string& why) {
  member_.inbox()->post([this, round, why] {
    member_.send(leader_.contact(), {.kind = NoteKind::failed, .round = round, .text = why});
  });
}

Result<Published> Publisher::State::ended(const Call& call, std::vector<weft::Transfer>& transfers,
                                          std::uint64_t bytes, Clock::time_point began) {
  const bool done = call.outcome->outcome == Outcome::done;
  bool quiescent = true;
  const Deadline drained = Deadline::in(drain_time);
  for (weft::Transfer& each : transfers) {
    if (!done) each.cancel();
  }
  for (weft::Transfer& each : transfers) {
    const auto waited = each.wait_quiescent(drained);
    quiescent &= waited.has_value() || each.quiescent();
  }
  const std::string text = fmt::format(
      "step {} {}: {}", call.step,
      call.outcome->outcome == Outcome::voided ? "is void" : "is in doubt", call.outcome->text);
  if (!quiescent)
    return fail(Code::quarantined,
                fmt::format("{}; a NIC may still read this rank's memory",
                            done ? fmt::format("step {} is done", call.step) : text));
  if (done) return Published{call.step, bytes, Clock::now() - began};
  return fail(call.outcome->outcome == Outcome::voided ? Code::cancelled : Code::unavailable, text);
}

// The public class.

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&& other) noexcept {
  if (this != &other) {
    if (state_) state_->stop();
    state_ = std::move(other.state_);
  }
  return *this;
}
Publisher::~Publisher() {
  if (state_) state_->stop();
}

Result<Publisher> Publisher::open(Engine& engine, Rank self, Segments segments,
                                  PublisherOptions options) {
  if (options.rank >= options.publishers)
    return fail(Code::invalid_argument, fmt::format("a group of {} publishers has no rank {}",
                                                    options.publishers, options.rank));
  if (options.rank > 0 && options.leader.empty())
    return fail(Code::invalid_argument, "the leader's address is missing");
  if (auto usable = check_rank(engine, self, segments); !usable)
    return fail(std::move(usable.error()));
  auto state =
      std::make_shared<State>(engine, std::move(self), std::move(segments), std::move(options));
  if (auto started = state->start(); !started) return fail(std::move(started.error()));
  return Publisher(std::move(state));
}

Result<Published> Publisher::publish(std::uint64_t step, Deadline deadline) {
  if (!state_) return fail(Code::closed, "the publisher was moved from");
  return state_->publish(step, deadline);
}

}  // namespace weft::weights
