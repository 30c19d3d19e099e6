#include "transfer/outcome.hpp"

#include <algorithm>

namespace weft::core {
namespace {

/// Sorted spans, asked about pieces that come in order.
class Sweep {
 public:
  explicit Sweep(std::vector<Span> spans) : spans_(std::move(spans)) {
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.at < b.at; });
  }
  /// How many of the bytes from `at` on lie in one of the spans.
  std::uint64_t within(std::uint64_t at, std::uint64_t length) {
    while (next_ < spans_.size() && spans_[next_].at + spans_[next_].length <= at) ++next_;
    std::uint64_t covered = 0;
    for (std::size_t i = next_; i < spans_.size() && spans_[i].at < at + length; ++i)
      covered +=
          std::min(spans_[i].at + spans_[i].length, at + length) - std::max(spans_[i].at, at);
    return covered;
  }

 private:
  std::vector<Span> spans_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<Placed> outcome_of(const PieceList& pieces, const Picks& picks,
                               std::vector<Span> unknown, std::vector<Span> untouched) {
  Sweep doubtful(std::move(unknown)), left(std::move(untouched));
  const std::size_t count = picks ? picks->size() : pieces.size();
  std::vector<Placed> outcome;
  outcome.reserve(count);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t length = pieces[picks ? (*picks)[i] : i].length;
    const std::uint64_t missing = left.within(at, length);
    if (length > 0 && missing == length)
      outcome.push_back(Placed::none);
    else
      outcome.push_back(missing > 0 || doubtful.within(at, length) > 0 ? Placed::unknown
                                                                       : Placed::all);
    at += length;
  }
  return outcome;
}

}  // namespace weft::core
