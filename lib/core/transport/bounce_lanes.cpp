#include "transport/bounce_lanes.hpp"

#include <algorithm>

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
  if (lane.asked || lane.credits > 0) return;
  lane.asked = true;
  tell(link, Step::wanted, theirs, std::min(count, limits_.each));
}

void BounceLanes::put_back(BounceLink& link, std::uint32_t theirs) {
  BounceLane& lane = link.lanes[theirs];
  --lane.used;
  if (lane.wanted_back) give_back_spare(link, theirs, lane);
}

void BounceLanes::give_back_spare(BounceLink& link, std::uint32_t theirs, BounceLane& lane) {
  const std::size_t count = lane.credits - lane.used;
  if (count == 0) return;
  lane.credits -= count;
  tell(link, Step::given_back, theirs, count);
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
      wanted_back(link, credits.giver);
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
  lane.asked = lane.wanted_back = lane.rests = false;
  lane.credits = std::min(count, limits_.each);
}

void BounceLanes::wanted_back(BounceLink& link, std::uint32_t theirs) {
  const auto entry = link.lanes.find(theirs);
  if (entry == link.lanes.end()) return;
  entry->second.wanted_back = true;
  give_back_spare(link, theirs, entry->second);
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
    to.credits = std::min(std::exchange(to.wanted, 0), left);
    if (!receives_.promise(to.credits)) to.credits = 0;
    to.wanted_back = false;
    for_peers_ += to.credits;
    if (to.credits > 0) holders_.emplace_back(link, theirs);
    tell(*link, Step::given, theirs, to.credits);
  }
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
  std::erase_if(waiting_, [&](const Holder& each) { return each.first == &link; });
  for (auto& [theirs, to] : std::exchange(link.given, {})) {
    for_peers_ -= to.credits;
    receives_.release(to.credits);
    std::erase(holders_, Holder{&link, theirs});
  }
  serve_those_waiting();
}

void BounceLanes::tidy(BounceLink& link) {
  for (auto& [theirs, lane] : link.lanes)
    if (std::exchange(lane.rests, true) && lane.used == 0) give_back_spare(link, theirs, lane);
}

}  // namespace weft::core
