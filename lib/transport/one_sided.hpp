// RMA straight between the two segments.
#pragma once

#include <limits>

#include "message/buffer_pool.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class OneSided final : public Transport, private providers::CompletionHandler {
 public:
  OneSided(providers::Endpoint& endpoint, std::size_t rail, std::uint64_t chunk_limit)
      : endpoint_(endpoint),
        rail_(rail),
        chunk_limit_(chunk_limit),
        landings_(endpoint, sizeof(std::uint64_t)) {}

  /// Makes room for epoch words to be read into. May block; before the first peer is met.
  Result<void> prepare();

  std::uint64_t chunk_limit(const Route&) const override { return chunk_limit_; }
  std::size_t room(const Route&) const override { return std::numeric_limits<std::size_t>::max(); }
  providers::Post post(Op& op) override;

 private:
  providers::Post read_epoch(Op& op);
  void completed(providers::Posted& posted, const providers::Completion& completion) override;

  providers::Endpoint& endpoint_;
  const std::size_t rail_;
  const std::uint64_t chunk_limit_;
  BufferPool landings_;
};

}  // namespace weft::core
