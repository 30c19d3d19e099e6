// A transport decorator that does something when a chunk has ended, before the engine hears of it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "forwarding.hpp"

namespace weft::test {

/// `then` is called on progress threads.
inline core::EngineHooks after_each(std::function<void(const core::Op&)> then) {
  class Decorated final : public ForwardingTransport, private core::ChunkSink {
   public:
    Decorated(core::Transport& inner, std::function<void(const core::Op&)> then)
        : ForwardingTransport(inner), then_(std::move(then)) {
      this->inner().set_sink(*this);
    }

   private:
    void chunk_ended(core::Op& op, const providers::Completion& completion) override {
      then_(op);
      sink().chunk_ended(op, completion);
    }
    const std::function<void(const core::Op&)> then_;
  };
  return hooks_wrapping<Decorated>(std::move(then));
}

}  // namespace weft::test
