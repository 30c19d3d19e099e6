// A transport decorator that lets nothing out until it is opened.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "forwarding.hpp"

namespace weft::test {

/// While shut, every chunk is refused for want of room, and so stays with the engine: a way to have
/// transfers in flight for as long as a test wants.
class Gate {
 public:
  void open() { state_->open = true; }
  void shut() { state_->open = false; }
  core::EngineHooks hooks() const { return hooks_wrapping<Gated>(state_); }

 private:
  struct State {
    std::atomic<bool> open{false};
  };
  class Gated final : public ForwardingPosts {
   public:
    Gated(core::Transport& inner, std::shared_ptr<State> state)
        : ForwardingPosts(inner), state_(std::move(state)) {}
    providers::Post post(core::Op& op) override {
      if (!state_->open) return {providers::PostStatus::again, 0};
      return pass_on(op);
    }

   private:
    const std::shared_ptr<State> state_;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weft::test
