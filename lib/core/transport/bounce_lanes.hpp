// Who may send requests through bounce buffers to whom. A lane leads from one rail to a rail of the
// peer's. It is opened when it is needed first: the rail that is to send asks, the other one posts
// receives and gives credits. Idle lanes are closed, so that peers share the receives of a rail.
//
// Every change goes over the control connection, which loses nothing: both sides agree about what
// was promised whatever becomes of a rail. Where a rail has no receives left, those that ask wait
// in a queue, and those that have credits are asked for them: they give them back after the
// requests that are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "transport/bounce_link.hpp"
#include "wire/notice.hpp"

namespace weft::core {

class Bounce;

/// Both ends of the lanes of one rail. Used by its owning thread only.
class BounceLanes {
 public:
  using Tell = std::function<void(const PeerState&, Notice)>;
  struct Limits {
    std::size_t each = 0;   // requests under way in one lane
    std::size_t peers = 0;  // receives for requests of peers
  };

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
  /// Closes the lanes to the peer that nothing has used since the last call.
  void tidy(BounceLink& link);

 private:
  using Step = BounceCredits::Step;
  using Holder = std::pair<BounceLink*, std::uint32_t>;  // a peer, and its rail

  void give_back_spare(BounceLink& link, std::uint32_t theirs, BounceLane& lane);
  void given(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void wanted_back(BounceLink& link, std::uint32_t theirs);
  void wanted(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void given_back(BounceLink& link, std::uint32_t theirs, std::size_t count);
  void serve_those_waiting();
  void want_back();
  void tell(const BounceLink& link, Step step, std::uint32_t theirs, std::size_t count) const;

  Receives<Bounce>& receives_;
  const std::uint32_t rail_;
  const Limits limits_;
  const Tell tell_;
  // Of requests that peers send.
  std::vector<Holder> holders_;
  std::deque<Holder> waiting_;
  std::size_t for_peers_ = 0;  // receives that the holders have been promised
};

}  // namespace weft::core
