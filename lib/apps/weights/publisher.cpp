// A rank of the publisher group: it writes what the leader's plan gives it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <weft/weights.hpp>

#include "base/log.hpp"
#include "base/random.hpp"
#include "weights/leader.hpp"
#include "weights/member.hpp"
#include "weights/names.hpp"
#include "weights/sender.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// For what was posted to come to its end after a step was void, beyond the deadline. A guess.
constexpr auto drain_time = 1s;
// For the answer of the leader in this process, beyond the deadline. It is due before, but on a
// machine that stood still its thread is no earlier than the one that waits. A guess.
constexpr auto late_answer = 1s;

}  // namespace

class Publisher::State final : private Role {
 public:
  State(Engine& engine, Rank self, Segments segments, PublisherOptions options)
      : self_(std::move(self)),
        segments_(std::move(segments)),
        options_(std::move(options)),
        member_(engine),
        leader_(member_, options_.rank == 0 ? "" : options_.leader),
        sender_(member_, leader_) {
    if (options_.rank == 0) lead_.emplace(member_, options_);
  }

  ~State() override { member_.stop(); }

  Result<void> start() {
    std::vector<Role*> roles{this};
    if (lead_) roles.push_back(&*lead_);
    return member_.start(std::move(roles));
  }
  bool forked() const noexcept { return member_.forked(); }

  Result<Published> publish(std::uint64_t step, Deadline deadline);

 private:
  /// What the thread in publish() and the member's thread share.
  struct Call {
    std::uint64_t number = 0, step = 0;
    bool active = false, asked = false;
    bool begun = false;  // its round
    Clock::time_point end = {};
    std::optional<Note> outcome = {};
  };

  void hear(const ContactPtr& from, const Note& note) override;
  void lost(const ContactPtr& contact) override;
  Clock::time_point advance(Clock::time_point now) override;
  void begin(const Note& note) WEFT_REQUIRES(mutex_);
  void end(Outcome outcome, std::string why) WEFT_REQUIRES(mutex_);

  Result<Published> ended(const Call& call, Clock::time_point began);

  const Rank self_;
  const Segments segments_;
  const PublisherOptions options_;
  core::Mutex mutex_;
  core::Condition answered_;
  Call call_ WEFT_GUARDED_BY(mutex_);
  // Another life of this rank had other calls.
  std::uint64_t next_call_ WEFT_GUARDED_BY(mutex_) = core::random_u64();
  Member member_;
  LeaderLink leader_;  // of the member's thread
  Sender sender_;
  std::optional<Leader> lead_;
};

// On the member's thread.

void Publisher::State::hear(const ContactPtr& from, const Note& note) {
  if (note.kind == NoteKind::granted) return sender_.granted(note);
  if (!leader_.is(from)) return;
  const core::Lock lock(mutex_);
  if (note.kind == NoteKind::plan) sender_.plan(note.sends, options_.verify);
  if (note.kind == NoteKind::begin) begin(note);
  if (note.kind == NoteKind::outcome && call_.active && note.call == call_.number)
    end(note.outcome, note.text);
}

void Publisher::State::begin(const Note& note) {
  if (!call_.active || call_.outcome || call_.number != note.call)
    return member_.send(leader_.contact(), {.kind = NoteKind::failed,
                                            .round = note.round,
                                            .text = "it has given up waiting for the others"});
  call_.begun = true;
  sender_.begin(note.round, segments_, Deadline::at(call_.end));
}

void Publisher::State::end(Outcome outcome, std::string why) {
  if (call_.outcome) return;
  call_.outcome = Note{.kind = NoteKind::outcome, .outcome = outcome, .text = std::move(why)};
  answered_.notify_all();
  sender_.end(outcome != Outcome::done);
  sender_.close();
}

void Publisher::State::lost(const ContactPtr& contact) {
  if (!leader_.is(contact)) return;
  leader_.lost();
  const core::Lock lock(mutex_);
  if (call_.active && call_.asked)
    end(call_.begun ? Outcome::unknown : Outcome::voided, "the leader is gone");
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
         .call = call_.number,
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
    call_ = {.number = next_call_++, .step = step, .active = true, .end = deadline.when()};
    sender_.open();
  }
  member_.inbox()->post([] {});  // advance() does the rest.
  sender_.serve(deadline);
  Call call;
  {
    const core::Lock lock(mutex_);
    if (lead_)
      answered_.wait(mutex_, Deadline::in(late_answer),
                     [&]() WEFT_REQUIRES(mutex_) { return call_.outcome.has_value(); });
    if (!call_.outcome)
      end(call_.begun ? Outcome::unknown : Outcome::voided,
          call_.asked ? "the leader did not answer in time" : "the leader was not met in time");
    call = std::exchange(call_, {});
  }
  return ended(call, began);
}

Result<Published> Publisher::State::ended(const Call& call, Clock::time_point began) {
  const bool done = call.outcome->outcome == Outcome::done;
  const bool quiescent = sender_.wait_quiescent(Deadline::in(drain_time));
  const std::string text = fmt::format(
      "step {} {}: {}", call.step,
      call.outcome->outcome == Outcome::voided ? "is void" : "is in doubt", call.outcome->text);
  if (!quiescent)
    return fail(Code::quarantined,
                fmt::format("{}; a NIC may still read this rank's memory",
                            done ? fmt::format("step {} is done", call.step) : text));
  if (done) return Published{call.step, sender_.bytes(), Clock::now() - began};
  return fail(call.outcome->outcome == Outcome::voided ? Code::cancelled : Code::unavailable, text);
}

// The public class.

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Publisher::~Publisher() {
  leave(std::move(state_));
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
  if (state_->forked()) return fail(core::forked_error());
  return state_->publish(step, deadline);
}

}  // namespace weft::weights
