// The operations that an endpoint has posted and that have not ended.
#pragma once

#include "endpoint.hpp"

namespace weft::providers {

/// By the owning thread only; costs no memory but what every Posted has.
class UnderWay {
 public:
  UnderWay() { ends_.before = ends_.after = &ends_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  void add(Posted& posted) noexcept {
    posted.before = ends_.before;
    posted.after = &ends_;
    ends_.before->after = &posted;
    ends_.before = &posted;
  }
  void remove(Posted& posted) noexcept {
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

 private:
  Posted ends_;  // before the first and after the last
};

}  // namespace weft::providers
