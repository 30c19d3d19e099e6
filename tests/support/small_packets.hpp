// Rails that take little at once, as some NICs do.
#pragma once

#include <memory>
#include <utility>

#include "forwarding.hpp"

namespace weft::test {

/// An endpoint whose messages have 1000 bytes at most: to be opened in wrapped().
class SmallPackets final : public ForwardingEndpoint {
 public:
  static constexpr std::size_t most = 1000;
  explicit SmallPackets(std::unique_ptr<providers::Endpoint> real)
      : ForwardingEndpoint(std::move(real)), record_(inner().capability()) {
    record_.max_send = most;
  }
  const Capability& capability() const noexcept override { return record_; }
  providers::Post send(providers::Posted& posted, const providers::Local& local,
                       providers::FabricAddress peer, providers::MessageClass type) override {
    if (local.length > most) return {providers::PostStatus::failed, EMSGSIZE};
    return ForwardingEndpoint::send(posted, local, peer, type);
  }

 private:
  Capability record_;
};

}  // namespace weft::test
