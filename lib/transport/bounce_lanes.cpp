#include "transport/bounce_lanes.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "peer/peer_state.hpp"
#include "transport/bounce.hpp"

namespace weft::core {

void BounceLanes::tell(const BounceLink& link, Step step, std::uint32_t theirs,
                       std::size_t count) const {
  const bool ours = step == Step::wanted || step == Step::given_back;  // we are the user
  tell_(*link.peer, BounceCredits{step, ours ? theirs : rail_, ours ? rail_ : theirs,
                                  static_cast<std::uint32_t>(count)});
}

bool BounceLanes::take(BounceLink& link, std::uint32_t theirs) {
  const auto entry = link.lanes.find(theirs);
  if (entry == link.lanes.end()) return false;
  BounceLane& lane = entry->second;
  if (lane.used >= lane.credits) return false;
  ++lane.used;
  lane.rests = false;
  return true;
}

void BounceLanes::ask(BounceLink& link, std::uint32_t theirs, std::size_t count) {
  BounceLane& lane = link.lanes[theirs];
  if (lane.asked || lane.credits > 0 || !promise_answers(link)) return;
  lane.asked = true;
  tell(link, Step::wanted, theirs, std::min(count, limits_.each));
}

/// One for each request that the link may have under way.
bool BounceLanes::promise_answers(BounceLink& link) {
  if (link.answers > 0) return true;
  const bool room = link.credits <= limits_.answers - for_answers_;
  answers_short_ = !room || promise(link.credits) == 0;
  if (!answers_short_) {
    link.answers = link.credits;
    for_answers_ += link.answers;
    users_.push_back(&link);
  }
  note();
  return !answers_short_;
}

void BounceLanes::put_back(BounceLink& link, std::uint32_t theirs) {
  BounceLane& lane = link.lanes[theirs];
  --lane.used;
  if (lane.wanted_back || answers_short_) give_back(link, theirs, lane, lane.credits - lane.used);
}

void BounceLanes::give_back(BounceLink& link, std::uint32_t theirs, BounceLane& lane,
                            std::size_t count) {
  if (count == 0) return;
  lane.credits -= count;
  if (lane.credits == 0) lane.wanted_back = false;
  tell(link, Step::given_back, theirs, count);
  close_if_unused(link);
}

void BounceLanes::close_if_unused(BounceLink& link) {
  const auto open = [](const auto& each) { return each.second.asked || each.second.credits > 0; };
  if (link.answers == 0 || std::any_of(link.lanes.begin(), link.lanes.end(), open)) return;
  for_answers_ -= link.answers;
  receives_.release(std::exchange(link.answers, 0));
  std::erase(users_, &link);
  note();
}

bool BounceLanes::hear(BounceLink& link, const BounceCredits& credits) {
  switch (credits.step) {
    case Step::wanted:
      wanted(link, credits.user, credits.count);
      return true;
    case Step::given:
      given(link, credits.giver, credits.count);
      return credits.count > 0;
    case Step::wanted_back:
      if (const auto lane = link.lanes.find(credits.giver);
          lane != link.lanes.end() && lane->second.credits > 0) {
        lane->second.wanted_back = true;
        note();
      }
      return true;
    case Step::given_back:
      given_back(link, credits.user, credits.count);
      return true;
  }
  return true;
}

void BounceLanes::given(BounceLink& link, std::uint32_t theirs, std::size_t count) {
  const auto entry = link.lanes.find(theirs);
  if (entry == link.lanes.end() || !entry->second.asked) return;  // not asked for
  BounceLane& lane = entry->second;
  lane.asked = false;
  lane.rests = false;
  lane.credits = std::min(count, limits_.each);
  close_if_unused(link);
}

void BounceLanes::wanted(BounceLink& link, std::uint32_t theirs, std::size_t count) {
  if (theirs >= link.peer->introduction.rails.size() || count == 0) return;
  BounceGiven& to = link.given[theirs];
  if (to.credits > 0 || to.wanted > 0) return;  // it has some, or has asked before
  to.wanted = std::min(count, limits_.each);
  waiting_.emplace_back(&link, theirs);
  serve_those_waiting();
}

void BounceLanes::serve_those_waiting() {
  while (!waiting_.empty()) {
    const std::size_t left = limits_.peers - for_peers_;
    if (left == 0) {
      want_back();
      break;
    }
    const auto [link, theirs] = waiting_.front();
    waiting_.pop_front();
    BounceGiven& to = link->given[theirs];
    to.credits = promise(std::min(std::exchange(to.wanted, 0), left));
    to.wanted_back = false;
    for_peers_ += to.credits;
    if (to.credits > 0) holders_.emplace_back(link, theirs);
    tell(*link, Step::given, theirs, to.credits);
  }
  note();
}

/// All or none: returns how many.
std::size_t BounceLanes::promise(std::size_t count) {
  const auto promised = receives_.promise(count);
  if (promised) return count;
  log(LogLevel::error, "no bounce buffers: {}", promised.error().to_string());
  return 0;
}

/// From those that have some: others wait.
void BounceLanes::want_back() {
  for (const auto& [link, theirs] : holders_)
    if (!std::exchange(link->given[theirs].wanted_back, true))
      tell(*link, Step::wanted_back, theirs, 0);
}

void BounceLanes::given_back(BounceLink& link, std::uint32_t theirs, std::size_t count) {
  const auto entry = link.given.find(theirs);
  if (entry == link.given.end()) return;
  BounceGiven& to = entry->second;
  const std::size_t back = std::min(count, to.credits);
  to.credits -= back;
  for_peers_ -= back;
  receives_.release(back);
  if (to.credits == 0) std::erase(holders_, Holder{&link, theirs});
  serve_those_waiting();
}

void BounceLanes::forget(BounceLink& link) {
  link.lanes.clear();
  close_if_unused(link);
  std::erase_if(waiting_, [&](const Holder& each) { return each.first == &link; });
  for (auto& [theirs, to] : std::exchange(link.given, {})) {
    for_peers_ -= to.credits;
    receives_.release(to.credits);
    std::erase(holders_, Holder{&link, theirs});
  }
  serve_those_waiting();
}

void BounceLanes::tidy(Clock::time_point now) {
  const std::vector<BounceLink*> users = users_;  // give_back() takes some out
  for (BounceLink* link : users)
    for (auto& [theirs, lane] : link->lanes) {
      if (!std::exchange(lane.rests, true)) lane.rests_since = now;
      const bool idle = now - lane.rests_since >= idle_after;
      if (idle || lane.wanted_back || answers_short_)
        give_back(*link, theirs, lane, lane.credits - lane.used);
    }
  answers_short_ = false;  // a link that still waits says so again
  note();
}

void BounceLanes::note() {
  const auto wanted_back = [](const BounceLink* link) {
    return std::any_of(link->lanes.begin(), link->lanes.end(),
                       [](const auto& each) { return each.second.wanted_back; });
  };
  loose_ = !closed();
  pressed_ = answers_short_ || std::any_of(users_.begin(), users_.end(), wanted_back);
}

}  // namespace weft::core
