// A transport decorator that lets nothing out until it is opened.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "engine/hooks.hpp"
#include "transport/transport.hpp"

namespace weft::test {

/// While shut, every chunk is refused for want of room, and so stays with the engine: a way to have
/// transfers in flight for as long as a test wants.
class Gate {
 public:
  void open() { state_->open = true; }
  void shut() { state_->open = false; }
  core::EngineHooks hooks() const {
    core::EngineHooks hooks;
    hooks.decorate = [state = state_](std::unique_ptr<core::Transport> inner) {
      return std::make_unique<Gated>(std::move(inner), state);
    };
    return hooks;
  }

 private:
  struct State {
    std::atomic<bool> open{false};
  };
  class Gated final : public core::Transport {
   public:
    Gated(std::unique_ptr<core::Transport> inner, std::shared_ptr<State> state)
        : inner_(std::move(inner)), state_(std::move(state)) {}
    std::uint64_t chunk_limit(const core::Route& route) const override {
      return inner_->chunk_limit(route);
    }
    std::size_t room(const core::Route& route) const override { return inner_->room(route); }
    providers::Post post(core::Op& op) override {
      if (!state_->open) return {providers::PostStatus::again, 0};
      inner_->set_sink(sink());
      return inner_->post(op);
    }
    std::size_t progress() override { return inner_->progress(); }
    void peer_died(core::Route& route) override { inner_->peer_died(route); }

   private:
    const std::unique_ptr<core::Transport> inner_;
    const std::shared_ptr<State> state_;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weft::test
