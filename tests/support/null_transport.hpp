// A transport that moves nothing: chunks complete at once, or when it makes progress, or never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace weft::test {

class NullTransport final : public core::Transport {
 public:
  enum class Completes { at_once, on_progress };

  explicit NullTransport(Completes when = Completes::at_once,
                         std::uint64_t chunk_limit = std::uint64_t{1} << 20)
      : when_(when), chunk_limit_(chunk_limit) {}

  std::uint64_t chunk_limit(const core::Route&) const override { return chunk_limit_; }
  std::size_t room(const core::Route&) const override {
    ++looks;
    return std::numeric_limits<std::size_t>::max();
  }
  providers::Post post(core::Op& op) override {
    ++posted;
    if (on_post) on_post(op);
    if (frozen.contains(op.route))
      stuck_.push_back(&op);
    else if (when_ == Completes::at_once)
      sink().chunk_ended(op, {});
    else
      waiting_.push_back(&op);
    return {};
  }
  std::size_t progress() override {
    std::swap(waiting_, completing_);
    for (core::Op* op : completing_) sink().chunk_ended(*op, {});
    const std::size_t count = completing_.size();
    completing_.clear();
    return count;
  }
  /// What went to those that are frozen ends with the next progress.
  void thaw() {
    frozen.clear();
    waiting_.insert(waiting_.end(), stuck_.begin(), stuck_.end());
    stuck_.clear();
  }

  std::set<const core::Route*> frozen;  // ways on which nothing ends
  std::function<void(const core::Op&)> on_post;
  mutable std::uint64_t looks = 0;  // how often it was asked for room
  std::uint64_t posted = 0;

 private:
  const Completes when_;
  const std::uint64_t chunk_limit_;
  std::vector<core::Op*> waiting_, completing_, stuck_;
};

}  // namespace weft::test
