#include "weights/leader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/random.hpp"
#include "weights/names.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

Clock::time_point in_microseconds(Clock::time_point now, std::uint64_t count) {
  return now + std::chrono::microseconds(std::min<std::uint64_t>(count, 86'400'000'000));
}

/// Of `microseconds` in all. Half a second is for threads that come late on a busy machine; a
/// guess.
std::uint64_t time_of_an_answer(std::uint64_t microseconds) {
  return std::max<std::uint64_t>(microseconds / 20,
                                 std::min<std::uint64_t>(microseconds / 8, 500'000));
}

}  // namespace

Leader::Leader(Member& member, const PublisherOptions& options)
    : member_(member), options_(options), life_(core::random_u64()) {}

void Leader::hear(const ContactPtr& from, const Note& note) {
  if (note.kind == NoteKind::join) return join(from, note);
  if (note.kind == NoteKind::stand) return take_stand(from, note);
  Joined* publisher = find(publishers_, from);
  if (publisher != nullptr && note.kind == NoteKind::ready) take_ready(*publisher, note);
  const Joined* sender = publisher != nullptr ? publisher : find(subscribers_, from);
  if (sender != nullptr && note.kind == NoteKind::failed && round_ && round_->id == note.round)
    stop(fmt::format("{}: {}", sender->description.name, note.text));
}

void Leader::join(const ContactPtr& from, const Note& note) {
  if (note.side == Side::publisher && note.rank >= options_.publishers) {
    core::log(LogLevel::warning, "weights: publisher {} joins a group of {}", note.rank,
              options_.publishers);
    return;
  }
  Group& group = note.side == Side::publisher ? publishers_ : subscribers_;
  if (const auto old = group.find(note.rank); old != group.end() && old->second.contact != from)
    lost(ContactPtr(old->second.contact));
  group[note.rank] = {from, note.description, note.text};
  plan_is_old_ = true;
  if (note.side == Side::subscriber) {
    last_step_ = std::max(last_step_, note.step);
    rejoin(from, note);
  }
}

/// A subscriber that comes back may not know how its last round ended.
void Leader::rejoin(const ContactPtr& from, const Note& note) {
  if (!round_ || round_->id != note.round) return;
  const auto at = std::find(round_->ranks.begin(), round_->ranks.end(), note.rank);
  if (at == round_->ranks.end()) return;
  const auto index = static_cast<std::size_t>(at - round_->ranks.begin());
  round_->contacts[index] = from;
  round_->tally.told(index, note.stand);
  if (round_->decision_sent)
    member_.send(from, {.kind = NoteKind::decision,
                        .round = round_->id,
                        .commit = round_->tally.state() == Tally::State::committed,
                        .text = round_->why});
  else if (round_->stop_sent)
    member_.send(from, {.kind = NoteKind::stop, .round = round_->id, .text = round_->why});
}

void Leader::take_ready(Joined& publisher, const Note& note) {
  // A publisher waits as long as it said. So subscribers are stopped two answers' time before that,
  // and it is told what came of it one answer's time before.
  const std::uint64_t answer = time_of_an_answer(note.microseconds);
  const auto now = Clock::now();
  publisher.ready =
      Ready{note.call, note.step, in_microseconds(now, note.microseconds - 2 * answer),
            in_microseconds(now, note.microseconds - answer)};
}

void Leader::take_stand(const ContactPtr& from, const Note& note) {
  if (!round_ || round_->id != note.round) return;
  const auto at = std::find(round_->contacts.begin(), round_->contacts.end(), from);
  if (at == round_->contacts.end()) return;
  if (note.stand == Stand::voided && round_->why.empty())
    round_->why = fmt::format("subscriber {}: {}", note.rank, note.text);
  round_->tally.told(static_cast<std::size_t>(at - round_->contacts.begin()), note.stand);
}

Leader::Joined* Leader::find(Group& group, const ContactPtr& contact) {
  for (auto& [rank, joined] : group)
    if (joined.contact == contact) return &joined;
  return nullptr;
}

void Leader::lost(const ContactPtr& contact) {
  for (Group* group : {&publishers_, &subscribers_})
    for (auto each = group->begin(); each != group->end(); ++each) {
      if (each->second.contact != contact) continue;
      if (round_ && !round_->concluded)
        stop(fmt::format("{} is gone", each->second.description.name));
      group->erase(each);
      plan_is_old_ = true;
      break;
    }
  if (round_) std::replace(round_->contacts.begin(), round_->contacts.end(), contact, ContactPtr());
}

Clock::time_point Leader::advance(Clock::time_point now) {
  auto next = now + 1h;
  if (round_) {
    if (!round_->concluded && now >= round_->give_up) stop("the deadline passed");
    follow_tally();
    if (!round_->concluded) {
      const bool settled = round_->tally.settled();
      const Outcome end = !settled                                           ? Outcome::unknown
                          : round_->tally.state() == Tally::State::committed ? Outcome::done
                                                                             : Outcome::voided;
      if (all_told() || now >= round_->end) conclude(end);
    }
    if (!round_->concluded) {
      next = std::min(next, now < round_->give_up ? round_->give_up : round_->end);
      return next;
    }
  }
  consider_round(now);
  if (round_ && !round_->concluded) return now;
  for (const auto& [rank, publisher] : publishers_)
    if (publisher.ready) next = std::min(next, publisher.ready->give_up);
  return next;
}

void Leader::consider_round(Clock::time_point now) {
  const std::string lacking = missing();
  std::optional<std::uint64_t> step;
  bool differ = false;
  for (auto& [rank, publisher] : publishers_) {
    if (!publisher.ready) continue;
    differ |= step && *step != publisher.ready->step;
    step = publisher.ready->step;
  }
  if (!step) return;
  std::string why = lacking;
  if (lacking.empty() && differ) why = "the publishers disagree about the step";
  if (lacking.empty() && !differ && *step <= newest_step())
    why = fmt::format(
        "a step {0} was published before: publish a greater one; to go back to an older one, "
        "restart publisher 0 and all inference ranks",
        newest_step());
  if (why.empty()) {
    if (plan_is_old_) {
      if (auto made = make_plan(); !made) why = made.error().message();
    }
    if (why.empty()) return begin_round();
  }
  for (auto& [rank, publisher] : publishers_)
    if (publisher.ready && (lacking.empty() || now >= publisher.ready->give_up))
      refuse_ready(publisher, why);
}

/// Who has not come yet, in words; empty if a round can begin.
std::string Leader::missing() const {
  for (std::uint32_t rank = 0; rank < options_.publishers; ++rank) {
    const auto at = publishers_.find(rank);
    if (at == publishers_.end()) return fmt::format("publisher {} is not there", rank);
    if (!at->second.ready) return fmt::format("publisher {} does not publish", rank);
  }
  if (subscribers_.empty() || subscribers_.size() < options_.subscribers)
    return fmt::format("only {} of {} subscribers have joined", subscribers_.size(),
                       std::max(1U, options_.subscribers));
  return {};
}

Result<void> Leader::make_plan() {
  World world;
  for (const auto& [rank, each] : publishers_) world.publishers.push_back(each.description);
  std::vector<Located> members;
  for (const auto& [rank, each] : subscribers_) {
    world.subscribers.push_back(each.description);
    members.push_back({rank, each.address});
  }
  auto made = plan(world, {.fan_out = options_.fan_out, .chunk_bytes = options_.chunk_bytes});
  if (!made) return fail(std::move(made.error()));
  if (std::uint64_t{made->chunks} * made->hops > most_stages)
    return fail(Code::unsupported, fmt::format("a chain of {} chunks and {} hops is too long",
                                               made->chunks, made->hops));
  tell(std::move(*made), members);
  plan_is_old_ = false;
  return {};
}

/// Each rank gets its part of the plan. All publishers are there: the index of one is its rank.
void Leader::tell(Plan plan, const std::vector<Located>& members) {
  std::vector<Note> to_publishers(publishers_.size()), to_subscribers(members.size());
  for (Transfer& transfer : plan.transfers) {
    const std::uint32_t from = transfer.from.rank;
    const bool published = transfer.from.side == Side::publisher;
    const Stage stage = transfer.chunk * plan.hops + transfer.hop;
    to_subscribers[transfer.to].sources.push_back(
        {published ? publishers_.at(from).address : members[from].address, stage,
         writes_of(transfer.pieces).size()});
    (published ? to_publishers : to_subscribers)[from].sends.push_back(
        {members[transfer.to].rank, stage, transfer.hop > 0, std::move(transfer.pieces)});
  }
  for (auto& [rank, each] : publishers_) {
    to_publishers[rank].kind = NoteKind::plan;
    member_.send(each.contact, to_publishers[rank]);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    to_subscribers[i].kind = NoteKind::plan;
    to_subscribers[i].verify = options_.verify;
    to_subscribers[i].members = members;
    member_.send(subscribers_.at(members[i].rank).contact, to_subscribers[i]);
  }
}

/// Of those that some subscriber may have. One in doubt is, until a subscriber says that it is
/// void.
std::uint64_t Leader::newest_step() const {
  const bool may_be = round_ && round_->tally.state() != Tally::State::voided;
  return std::max(last_step_, may_be ? round_->step : 0);
}

void Leader::begin_round() {
  last_step_ = newest_step();
  Running round{.id = {life_, ++rounds_},
                .step = publishers_.begin()->second.ready->step,
                .give_up = Clock::time_point::max(),
                .end = Clock::time_point::max(),
                .ranks = {},
                .contacts = {},
                .tally = Tally(subscribers_.size())};
  for (auto& [rank, each] : publishers_) {
    round.give_up = std::min(round.give_up, each.ready->give_up);
    round.end = std::min(round.end, each.ready->end);
    each.call = each.ready->call;
    each.ready.reset();
  }
  for (const auto& [rank, each] : subscribers_) {
    round.ranks.push_back(rank);
    round.contacts.push_back(each.contact);
  }
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(round.end - Clock::now());
  Note begin{.kind = NoteKind::begin,
             .round = round.id,
             .step = round.step,
             .microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.count()))};
  round_ = std::move(round);
  for (auto& [rank, each] : publishers_) {
    begin.call = each.call;
    member_.send(each.contact, begin);
  }
  begin.call = 0;
  tell_members(begin);
}

void Leader::stop(const std::string& why) {
  if (round_->why.empty()) round_->why = why;
  round_->tally.stop();
}

void Leader::follow_tally() {
  if (round_->tally.state() == Tally::State::stopping && !std::exchange(round_->stop_sent, true))
    tell_members({.kind = NoteKind::stop, .round = round_->id, .text = round_->why});
  if (!round_->tally.settled() || std::exchange(round_->decision_sent, true)) return;
  const bool commit = round_->tally.state() == Tally::State::committed;
  tell_members(
      {.kind = NoteKind::decision, .round = round_->id, .commit = commit, .text = round_->why});
}

/// Whether every member that lives has said how the round ended.
bool Leader::all_told() const {
  if (!round_->tally.settled())
    return std::all_of(round_->contacts.begin(), round_->contacts.end(),
                       [](const ContactPtr& each) { return !each; });
  for (std::size_t i = 0; i < round_->contacts.size(); ++i) {
    const Stand stand = round_->tally.stand(i);
    if (round_->contacts[i] && stand != Stand::committed && stand != Stand::voided) return false;
  }
  return true;
}

void Leader::conclude(Outcome outcome) {
  round_->concluded = true;
  for (auto& [rank, each] : publishers_)
    member_.send(
        each.contact,
        {.kind = NoteKind::outcome, .call = each.call, .outcome = outcome, .text = round_->why});
}

void Leader::refuse_ready(Joined& publisher, const std::string& why) {
  const Note note{.kind = NoteKind::outcome,
                  .call = publisher.ready->call,
                  .outcome = Outcome::voided,
                  .text = why};
  publisher.ready.reset();
  member_.send(publisher.contact, note);
}

void Leader::tell_members(const Note& note) {
  for (const ContactPtr& each : round_->contacts) member_.send(each, note);
}

}  // namespace weft::weights
