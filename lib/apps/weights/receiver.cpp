#include "weights/receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "weights/names.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// Holders are asked to stop once; each look waits for so long. A guess.
constexpr auto look_time = 5ms;
// A holder that has not stopped by then is kept out by closing keys, or the rail. A guess.
constexpr auto patience = 2s;
constexpr auto fence_time = 500ms;
// Between two looks at what waits for others, and two questions. Guesses.
constexpr auto look_again = 10ms;
constexpr auto ask_again = 200ms;
constexpr auto question_time = 200ms;
// For a source to introduce itself: on a machine with far more threads than cores it takes some
// tenths of a second. A guess.
constexpr auto introduction_time = 1s;

}  // namespace

Receiver::Receiver(Member& member, Rank self, std::vector<Segments> sets, SubscriberOptions options,
                   std::shared_ptr<Versions> versions)
    : member_(member),
      self_(std::move(self)),
      sets_(std::move(sets)),
      options_(std::move(options)),
      versions_(std::move(versions)),
      leader_(member, options_.leader),
      sender_(member, leader_) {}

void Receiver::hear(const ContactPtr& from, const Note& note) {
  if (note.kind == NoteKind::granted) return sender_.granted(note);
  if (note.kind == NoteKind::question || note.kind == NoteKind::stand) return take(from, note);
  if (!leader_.is(from)) return;
  switch (note.kind) {
    case NoteKind::plan:
      members_ = note.members;
      sources_ = note.sources;
      sender_.plan(note.sends, note.verify);
      break;
    case NoteKind::begin:
      begin(note);
      break;
    case NoteKind::stop:
    case NoteKind::decision:
      take(from, note);
      break;
    default:
      break;
  }
}

void Receiver::begin(const Note& note) {
  if (round_ && !round_->ballot.settled()) {
    give_up("another round began");
    if (!round_->ballot.settled()) versions_->lose();
    sender_.end(true);
  }
  std::size_t self = 0;
  while (self < members_.size() && members_[self].rank != options_.rank) ++self;
  round_.emplace(Running{.id = note.round,
                         .step = note.step,
                         .end = Clock::now() + std::chrono::microseconds(std::min<std::uint64_t>(
                                                   note.microseconds, 86'400'000'000)),
                         .ballot = Ballot(members_.size(), self),
                         .members = members_,
                         .sources = sources_});
}

/// What is said about the round that runs, or ran last.
void Receiver::take(const ContactPtr& from, const Note& note) {
  if (!round_ || round_->id != note.round) return;
  const std::string why = note.text.empty() ? "another rank voided it" : note.text;
  if (round_->why.empty()) round_->why = why;
  switch (note.kind) {
    case NoteKind::question:
      round_->ballot.asked();
      follow_ballot();
      tell_stand(from);
      return;
    case NoteKind::stand:
      round_->ballot.told(member_of(note.rank), note.stand);
      break;
    case NoteKind::stop:
      round_->ballot.stop();
      if (round_->ballot.stand() == Stand::pledged) {
        round_->asks = true;
        tell_stand(from);
      }
      break;
    default:
      round_->ballot.decided(note.commit);
      break;
  }
  follow_ballot();
}

std::size_t Receiver::member_of(std::uint32_t rank) const {
  const auto& members = round_->members;
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const Located& each) { return each.rank == rank; });
  return static_cast<std::size_t>(at - members.begin());
}

void Receiver::lost(const ContactPtr& contact) {
  if (!leader_.is(contact)) return;
  leader_.lost();
  versions_->connected(false);
  if (!round_ || round_->ballot.settled()) return;
  if (round_->why.empty()) round_->why = "the leader is gone";
  round_->ballot.leader_lost();
  round_->asks = true;
  follow_ballot();
}

void Receiver::join() {
  Note note{.kind = NoteKind::join,
            .step = versions_->standing().step,
            .rank = options_.rank,
            .side = Side::subscriber,
            .text = member_.engine().address(),
            .description = self_};
  if (round_) {
    note.round = round_->id;
    note.stand = round_->ballot.stand();
  }
  member_.send(leader_.contact(), note);
  versions_->connected(true);
}

Clock::time_point Receiver::advance(Clock::time_point now) {
  if (leader_.advance(now)) join();
  if (round_) advance_round(now);
  auto next = leader_.next();
  for (std::size_t set = 0; set < sets_.size(); ++set)
    if (granted_[set].ending && !drained(set, now)) next = std::min(next, now + look_again);
  if (round_ && !round_->ballot.settled()) {
    next = std::min(next, now < round_->end ? round_->end : now + ask_again);
    if (round_->asks) next = std::min(next, round_->next_question);
    if (round_->phase == Phase::waiting || round_->phase == Phase::draining)
      next = std::min(next, now + look_again);
  }
  return next;
}

void Receiver::advance_round(Clock::time_point now) {
  if (!round_->ballot.settled() && now >= round_->end) {
    if (round_->why.empty()) round_->why = "the deadline passed";
    round_->ballot.leader_lost();
    round_->asks = true;
    follow_ballot();
  }
  if (round_->asks && !round_->ballot.settled() && now >= round_->next_question) ask_others(now);
  if (round_->ballot.stand() != Stand::receiving) return;
  if (round_->phase == Phase::waiting) grant();
  if (round_->phase == Phase::receiving && round_->outstanding.empty())
    round_->phase = Phase::draining;
  if (round_->phase == Phase::draining && drained(round_->set, now)) complete();
}

void Receiver::grant() {
  if (auto met = meet_sources(); !met) {
    round_->waits_for = met.error().to_string();
    return;
  }
  round_->waits_for = "a peer that still gets what this rank passed on";
  if (!sender_.quiescent()) return;
  auto free = versions_->begin();
  if (!free) return give_up(free.error().message());
  round_->waits_for = "a reader of the memory";
  if (!*free) return;
  round_->set = **free;
  Granted& granted = granted_[round_->set];
  round_->waits_for = "a peer that may still write an earlier step";
  if (!granted.grants.empty()) return;
  round_->waits_for.clear();
  round_->phase = Phase::receiving;
  const Segments& segments = sets_[round_->set];
  Note note{.kind = NoteKind::granted, .round = round_->id, .rank = options_.rank};
  for (const auto& segment : segments) {
    auto made = segment->grant({}, Rights::write);
    if (!made) return give_up(made.error().to_string());
    note.grants.push_back(made->blob());
    granted.grants.push_back(std::move(*made));
  }
  for (const Source& source : round_->sources)
    if (auto expected = expect_from(round_->met[source.address], source); !expected)
      return give_up(expected.error().to_string());
  for (const auto& [address, contact] : round_->met) member_.send(contact, note);
  sender_.begin(round_->id, segments, Deadline::at(round_->end));
}

/// One after the other: what cannot be met now may be met later, until the round is over.
Result<void> Receiver::meet_sources() {
  for (const Source& source : round_->sources) {
    ContactPtr& contact = round_->met[source.address];
    if (contact && !contact->down) continue;
    auto met = member_.meet(source.address, Deadline::in(introduction_time));
    if (!met) return fail(std::move(met.error()));
    contact = std::move(*met);
  }
  return {};
}

Result<void> Receiver::expect_from(const ContactPtr& contact, const Source& source) {
  ++round_->outstanding[source.stage];
  auto expected = contact->peer->expect(
      signal_id(round_->id, source.stage), source.writes,
      {.on_end =
           [this, inbox = member_.inbox(), round = round_->id, stage = source.stage](
               auto, const Error* error) {
             inbox->post([this, round, stage, trouble = error ? error->to_string() : ""] {
               arrived(round, stage, trouble);
             });
           },
       .late = Late::drop});
  if (!expected) return fail(std::move(expected.error()));
  round_->expectations.push_back(std::move(*expected));
  return {};
}

void Receiver::arrived(const Round& round, Stage stage, const std::string& trouble) {
  if (!round_ || round_->id != round || round_->ballot.stand() != Stand::receiving) return;
  if (!trouble.empty()) return give_up(trouble);
  const auto left = round_->outstanding.find(stage);
  if (--left->second > 0) return;
  round_->outstanding.erase(left);
  sender_.arrived(stage);
}

void Receiver::complete() {
  round_->phase = Phase::over;
  round_->expectations.clear();
  round_->ballot.complete();
  follow_ballot();
}

void Receiver::give_up(const std::string& why) {
  if (round_->why.empty()) round_->why = why;
  round_->ballot.give_up();
  follow_ballot();
}

void Receiver::follow_ballot() {
  const Stand stand = round_->ballot.stand();
  if (stand == std::exchange(round_->shown, stand)) return;
  if (stand == Stand::pledged) versions_->doubt();
  if (stand == Stand::committed)
    if (auto kept = versions_->commit(round_->step); !kept)
      core::log(LogLevel::warning, "weights: {}", kept.error().message());
  if (stand == Stand::voided) {
    if (!round_->waits_for.empty())
      round_->why += fmt::format("; this rank waited for {}", round_->waits_for);
    versions_->give_up(fmt::format("step {} is void: {}", round_->step, round_->why));
    round_->phase = Phase::over;
    round_->expectations.clear();
    sender_.end(true);
    // Whatever is under way must not land in what a later round brings.
    granted_[round_->set].ending = Clock::now();
  }
  tell_stand(leader_.contact());
  if (round_->asks && round_->ballot.settled())
    for (const Located& each : round_->members)
      if (each.rank != options_.rank)
        if (auto other = member_.meet(each.address, Deadline::in(question_time)))
          tell_stand(*other);
}

void Receiver::tell_stand(const ContactPtr& to) {
  member_.send(to, {.kind = NoteKind::stand,
                    .round = round_->id,
                    .rank = options_.rank,
                    .stand = round_->ballot.stand(),
                    .text = round_->why});
}

void Receiver::ask_others(Clock::time_point now) {
  for (const Located& each : round_->members) {
    if (each.rank == options_.rank) continue;
    if (auto other = member_.meet(each.address, Deadline::in(question_time)))
      member_.send(*other,
                   {.kind = NoteKind::question, .round = round_->id, .rank = options_.rank});
  }
  round_->next_question = now + ask_again;
}

bool Receiver::drained(std::size_t set, Clock::time_point now) {
  Granted& granted = granted_[set];
  if (!granted.ending) granted.ending = now;
  const bool patient = now < *granted.ending + patience;
  std::erase_if(granted.grants, [&](Grant& each) {
    const auto ended = patient ? each.revoke(Deadline::in(look_time))
                               : each.fence(Deadline::in(fence_time), FenceScope::rail);
    return ended && *ended == Revoked::quiescent;
  });
  if (!granted.grants.empty()) return false;
  granted.ending.reset();
  return true;
}

Result<void> Receiver::start() {
  return core::start_thread([this] {
           while (sender_.serve(Deadline::in(Deadline::furthest))) {
           }
         })
      .map([this](std::thread started) { passer_ = std::move(started); });
}

bool Receiver::close(Deadline deadline) {
  if (round_) round_->expectations.clear();
  sender_.end(true);
  sender_.close();
  if (passer_.joinable()) passer_.join();
  if (!sender_.wait_quiescent(deadline)) return false;
  for (std::size_t set = 0; set < sets_.size(); ++set)
    while (!drained(set, Clock::now()))
      if (deadline.passed()) return false;
  return true;
}

}  // namespace weft::weights
