// A transport decorator behind which operations are carried out, and their ends are not told.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "forwarding.hpp"

namespace weft::test {

/// Like a frozen NIC: what was posted stays posted for as long as a test wants.
class HeldBack {
 public:
  void let_go() { state_->held = false; }
  /// Operations that have been carried out and not told, of all rails.
  std::size_t count() const { return state_->count; }
  core::EngineHooks hooks() const { return hooks_wrapping<Holding>(state_); }

 private:
  struct State {
    std::atomic<bool> held{true};
    std::atomic<std::size_t> count{0};
  };
  class Holding final : public ForwardingTransport, private core::ChunkSink {
   public:
    Holding(core::Transport& inner, std::shared_ptr<State> state)
        : ForwardingTransport(inner), state_(std::move(state)) {
      this->inner().set_sink(*this);
    }
    std::size_t progress() override {
      std::size_t done = inner().progress();
      if (state_->held) return done;
      for (const auto& [op, completion] : std::exchange(ended_, {})) {
        sink().chunk_ended(*op, completion);
        ++done;
      }
      return done;
    }

   private:
    void chunk_ended(core::Op& op, const providers::Completion& completion) override {
      if (!state_->held) return sink().chunk_ended(op, completion);
      ended_.emplace_back(&op, completion);
      ended_.back().second.text = {};  // valid during the call only
      ++state_->count;
    }
    const std::shared_ptr<State> state_;
    std::vector<std::pair<core::Op*, providers::Completion>> ended_;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weft::test
