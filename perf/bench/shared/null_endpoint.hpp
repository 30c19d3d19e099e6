// Engines whose rails move nothing: what they post completes at the next poll, so that what is left
// is the engine's own cost. Everything else of them is real: peers, segments, grants, keys.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "forwarding.hpp"

namespace weft::perf {

/// The real endpoint registers memory and knows the peers' addresses, and is never polled.
class NullEndpoint final : public test::ForwardingEndpoint {
 public:
  explicit NullEndpoint(std::unique_ptr<providers::Endpoint> inner)
      : ForwardingEndpoint(std::move(inner)), record_(ForwardingEndpoint::capability()) {
    record_.rma_pieces = 1;  // each piece is an operation, of which the cost is told
    record_.shared_doorbell = false;
  }
  const Capability& capability() const noexcept override { return record_; }

  providers::Post write(providers::Posted& posted, const providers::Local& local,
                        const providers::Target&) override {
    posted_.push_back({&posted, local.length});
    return {};
  }
  providers::Post read(providers::Posted& posted, const providers::Local& local,
                       const providers::Target& target) override {
    return write(posted, local, target);
  }
  std::size_t poll() override {
    ending_.swap(posted_);
    for (const Sent& each : ending_)
      each.posted->handler->completed(*each.posted, {.length = each.length});
    const std::size_t count = ending_.size();
    ending_.clear();
    return count;
  }

 private:
  struct Sent {
    providers::Posted* posted;
    std::size_t length;
  };
  Capability record_;
  std::vector<Sent> posted_, ending_;
};

/// Not beside others that are being opened.
inline Result<Engine> open_over_nothing(const Config& config) {
  return test::open_wrapped<NullEndpoint>(config);
}

}  // namespace weft::perf
