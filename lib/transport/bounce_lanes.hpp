// Who may send requests through bounce buffers to whom. A lane leads from one rail to a rail of the
// peer's. It is opened when it is needed first: the rail that is to send asks, the other one posts
// receives and gives credits. Idle lanes are closed, so that peers share the receives of a rail.
//
// Every change goes over the control connection, which loses nothing: both sides agree about what
// was promised whatever becomes of a rail. Where a rail has no receives left, those who ask wait in
// a queue, and those who have credits are asked for them: they give them back after one use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "transport/bounce_link.hpp"
#include "wire/notice.hpp"

namespace weft::core {

class Bounce;

/// Both ends of the lanes of one rail. Used by its owning thread only.
class BounceLanes {
 public:
  using Tell = std::function<void(const PeerState&, Notice)>;
  struct Limits {
    std::size_t each = 0;     // requests under way in one lane
    std::size_t peers = 0;    // receives for requests of peers, ...
    std::size_t answers = 0;  // ... and for answers to our own
  };
  /// So long lanes stay open that nothing uses. A guess: opening one takes a round trip of the
  /// control connection.
  static constexpr auto idle_after = std::chrono::seconds(5);

  BounceLanes(Receives<Bounce>& receives, std::uint32_t rail, Limits limits, Tell tell)
      : receives_(receives), rail_(rail), limits_(limits), tell_(std::move(tell)) {}

  /// Takes a credit at one of the peer's rails. False if there is none.
  bool take(BounceLink& link, std::uint32_t theirs);
  /// It is to be had soon: asks for so many, if none was given or asked for.
  void ask(BounceLink& link, std::uint32_t theirs, std::size_t count);
  /// The request is over.
  void put_back(BounceLink& link, std::uint32_t theirs);
  /// A peer's word. False if it has refused.
  bool hear(BounceLink& link, const BounceCredits& credits);
  /// The peer is gone.
  void forget(BounceLink& link);
  /// Closes what is idle, or wanted elsewhere.
  void tidy(Clock::time_point now);

  /// No lane is open, in either direction.
  bool closed() const noexcept { return users_.empty() && holders_.empty(); }
  // From any thread.
  /// tidy() may have something to do, now or later; or others wait for it.
  bool loose() const noexcept { return loose_.load(std::memory_order_relaxed); }
  bool pressed() const noexcept { return pressed_.load(std::memory_order_relaxed); }

 private:
  using Step = BounceCredits::Step;
  using Holder = std::pair<BounceLink*, std::uint32_t>;  // a peer, and its rail

  bool promise_answers(BounceLink& link);
  void give_back(BounceLink& link, std::uint32_t theirs, BounceLane& lane, std::size_t count);
  void close_if_unused(BounceLink& link);
  void given(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void wanted(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void given_back(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void serve_those_waiting();
  std::size_t promise(std::size_t count);
  void want_back();
  void note();
  void tell(const BounceLink& link, Step step, std::uint32_t theirs, std::size_t count) const;

  Receives<Bounce>& receives_;
  const std::uint32_t rail_;
  const Limits limits_;
  const Tell tell_;
  // Our own requests.
  std::vector<BounceLink*> users_;  // links with receives for answers
  std::size_t for_answers_ = 0;     // of these
  bool answers_short_ = false;      // a link waits for some
  // Requests of peers.
  std::vector<Holder> holders_;
  std::deque<Holder> waiting_;
  std::size_t for_peers_ = 0;  // receives that the holders have been promised
  std::atomic<bool> loose_{false}, pressed_{false};
};

}  // namespace weft::core
