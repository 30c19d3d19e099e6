// A transport decorator that does something when a chunk has ended, before the engine hears of it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/hooks.hpp"
#include "transport/transport.hpp"

namespace weft::test {

/// `then` is called on progress threads.
inline core::EngineHooks after_each(std::function<void(const core::Op&)> then) {
  class Decorated final : public core::Transport, private core::ChunkSink {
   public:
    Decorated(std::unique_ptr<core::Transport> inner, std::function<void(const core::Op&)> then)
        : inner_(std::move(inner)), then_(std::move(then)) {
      inner_->set_sink(*this);
    }
    std::uint64_t chunk_limit(const core::Route& route) const override {
      return inner_->chunk_limit(route);
    }
    std::size_t room(const core::Route& route) const override { return inner_->room(route); }
    providers::Post post(core::Op& op) override { return inner_->post(op); }
    std::size_t progress() override { return inner_->progress(); }
    void peer_died(core::Route& route) override { inner_->peer_died(route); }

   private:
    void chunk_ended(core::Op& op, const providers::Completion& completion) override {
      then_(op);
      sink().chunk_ended(op, completion);
    }
    const std::unique_ptr<core::Transport> inner_;
    const std::function<void(const core::Op&)> then_;
  };
  core::EngineHooks hooks;
  hooks.decorate = [then = std::move(then)](std::unique_ptr<core::Transport> inner) {
    return std::make_unique<Decorated>(std::move(inner), then);
  };
  return hooks;
}

}  // namespace weft::test
