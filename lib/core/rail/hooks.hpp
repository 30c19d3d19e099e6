// Doors for tests. Programs reach the first one alone, by weft/testkit.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <weft/engine.hpp>

#include "wire/notice.hpp"

namespace weft::providers {
class Endpoint;
}

namespace weft::core {

class Transport;

/// Wraps a transport of a rail, to inject faults. The wrapper has the transport's
/// properties, and does not outlive it.
using TransportDecorator = std::function<std::unique_ptr<Transport>(Transport&)>;

struct EngineHooks {
  /// Wraps every transport of every rail.
  TransportDecorator decorate;
  /// Where the numbers of messages from each peer begin (they wrap at 2^32).
  std::optional<std::uint32_t> first_sequence;
  /// Reads are accepted without a look at the lease word, to measure what that costs.
  bool trusts_reads = false;
  /// What this engine says about leases, and is lost on the way if it returns true. From any
  /// thread.
  std::function<bool(const Notice&)> lose;
};

/// Wraps the endpoint of every rail that this process opens, if set; before any engine is opened.
/// Global, since programs are tested that open engines by the public API.
using EndpointDecorator =
    std::function<std::unique_ptr<providers::Endpoint>(std::unique_ptr<providers::Endpoint>)>;
EndpointDecorator& endpoint_decorator();

Result<Engine> open_engine(const Config& config, const EngineHooks& hooks);

}  // namespace weft::core
