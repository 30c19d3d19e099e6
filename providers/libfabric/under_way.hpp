// The operations that an endpoint has posted and that have not ended.
#pragma once

#include "providers/endpoint.hpp"

namespace weft::providers {

/// By the owning thread only; costs no memory but what every Posted has.
class UnderWay {
 public:
  UnderWay() { ends_.before = ends_.after = &ends_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  /// `sends`: it takes a place in the send queue, until it has ended.
  void add(Posted& posted, bool sends) noexcept {
    posted.sends = sends;
    if (sends) ++sending_;
    posted.before = ends_.before;
    posted.after = &ends_;
    ends_.before->after = &posted;
    ends_.before = &posted;
  }
  void remove(Posted& posted) noexcept {
    if (posted.sends) --sending_;
    posted.before->after = posted.after;
    posted.after->before = posted.before;
  }
  /// Tells all of them, but none that is added meanwhile, that they have ended so.
  void end_all(const Completion& completion) {
    Posted* const last = ends_.before;
    for (bool more = last != &ends_; more;) {
      Posted& posted = *ends_.after;
      more = &posted != last;
      remove(posted);
      posted.handler->completed(posted, completion);
    }
  }

  /// How many places of the send queue are taken.
  std::size_t sending() const noexcept { return sending_; }

 private:
  Posted ends_;  // before the first and after the last
  std::size_t sending_ = 0;
};

}  // namespace weft::providers
