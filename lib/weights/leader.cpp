#include "weights/leader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/random.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

Clock::time_point in_microseconds(Clock::time_point now, std::uint64_t count) {
  return now + std::chrono::microseconds(std::min<std::uint64_t>(count, 86'400'000'000));
}

/// The groups of pieces that one write each carries.
std::uint64_t writes_of(const std::vector<Piece>& pieces) {
  std::uint64_t writes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    writes += i == 0 || pieces[i].src_segment != pieces[i - 1].src_segment ||
              pieces[i].dst_segment != pieces[i - 1].dst_segment;
  return writes;
}

}  // namespace

Leader::Leader(Member& member, std::uint32_t publishers, std::uint32_t subscribers)
    : member_(member),
      publishers_wanted_(publishers),
      subscribers_wanted_(subscribers),
      life_(core::random_u64()) {}

void Leader::hear(const ContactPtr& from, const Note& note) {
  if (note.kind == NoteKind::join) return join(from, note);
  if (note.kind == NoteKind::stand) return take_stand(from, note);
  Joined* publisher = publisher_at(from);
  if (publisher == nullptr) return;
  if (note.kind == NoteKind::ready) take_ready(*publisher, note);
  if (note.kind == NoteKind::failed && round_ && round_->id == note.round)
    stop(fmt::format("{}: {}", publisher->description.name, note.text));
}

void Leader::join(const ContactPtr& from, const Note& note) {
  if (note.side == Side::publisher && note.rank >= publishers_wanted_) {
    core::log(LogLevel::warning, "weights: publisher {} joins a group of {}", note.rank,
              publishers_wanted_);
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
  const auto now = Clock::now();
  publisher.ready = Ready{note.step, in_microseconds(now, note.microseconds / 10 * 9),
                          in_microseconds(now, note.microseconds)};
}

void Leader::take_stand(const ContactPtr& from, const Note& note) {
  if (!round_ || round_->id != note.round) return;
  const auto at = std::find(round_->contacts.begin(), round_->contacts.end(), from);
  if (at == round_->contacts.end()) return;
  if (note.stand == Stand::voided && round_->why.empty())
    round_->why = fmt::format("subscriber {}: {}", note.rank, note.text);
  round_->tally.told(static_cast<std::size_t>(at - round_->contacts.begin()), note.stand);
}

Leader::Joined* Leader::publisher_at(const ContactPtr& contact) {
  for (auto& [rank, publisher] : publishers_)
    if (publisher.contact == contact) return &publisher;
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
    if (!round_->concluded && now >= round_->give_up) stop("its time is over");
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
  if (lacking.empty() && !differ && *step <= last_step_)
    why = fmt::format("a step {} was published before", last_step_);
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
  for (std::uint32_t rank = 0; rank < publishers_wanted_; ++rank) {
    const auto at = publishers_.find(rank);
    if (at == publishers_.end()) return fmt::format("publisher {} is not there", rank);
    if (!at->second.ready) return fmt::format("publisher {} does not publish", rank);
  }
  if (subscribers_.empty() || subscribers_.size() < subscribers_wanted_)
    return fmt::format("{} of {} subscribers are there", subscribers_.size(),
                       std::max(1U, subscribers_wanted_));
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
  // Replicas do not pass bytes on yet.
  auto made = plan(world, {.fan_out = FanOut::direct});
  if (!made) return fail(std::move(made.error()));

  std::vector<Note> to_publishers(world.publishers.size()), to_subscribers(members.size());
  for (Transfer& transfer : made->transfers) {
    const std::uint32_t from = transfer.from.rank;  // All publishers are there: index is rank.
    to_subscribers[transfer.to].sources.push_back(
        {from, publishers_.at(from).address, writes_of(transfer.pieces)});
    to_publishers[from].sends.push_back({members[transfer.to].rank, std::move(transfer.pieces)});
  }
  for (auto& [rank, each] : publishers_) {
    to_publishers[rank].kind = NoteKind::sends;
    member_.send(each.contact, to_publishers[rank]);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    to_subscribers[i].kind = NoteKind::sources;
    to_subscribers[i].members = members;
    member_.send(subscribers_.at(members[i].rank).contact, to_subscribers[i]);
  }
  plan_is_old_ = false;
  return {};
}

void Leader::begin_round() {
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
    each.ready.reset();
  }
  for (const auto& [rank, each] : subscribers_) {
    round.ranks.push_back(rank);
    round.contacts.push_back(each.contact);
  }
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(round.end - Clock::now());
  const Note begin{
      .kind = NoteKind::begin,
      .round = round.id,
      .step = round.step,
      .microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.count()))};
  round_ = std::move(round);
  for (auto& [rank, each] : publishers_) member_.send(each.contact, begin);
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
  if (commit) last_step_ = std::max(last_step_, round_->step);
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
  // It may be in a subscriber that can't be asked.
  if (outcome == Outcome::unknown) last_step_ = std::max(last_step_, round_->step);
  const Note note{.kind = NoteKind::outcome,
                  .round = round_->id,
                  .step = round_->step,
                  .outcome = outcome,
                  .text = round_->why};
  for (auto& [rank, each] : publishers_) member_.send(each.contact, note);
}

void Leader::refuse_ready(Joined& publisher, const std::string& why) {
  const Note note{.kind = NoteKind::outcome,
                  .step = publisher.ready->step,
                  .outcome = Outcome::voided,
                  .text = why};
  publisher.ready.reset();
  member_.send(publisher.contact, note);
}

void Leader::tell_members(const Note& note) {
  for (const ContactPtr& each : round_->contacts) member_.send(each, note);
}

}  // namespace weft::weights
