// Carries JSON documents between two engines as tagged messages and signals.
#pragma once

#include <cstdint>
#include <string>
#include <weft/engine.hpp>

#include "protocol.hpp"

namespace weft::tool {

/// What a message is about: the upper byte of its tag. The rest is the request's number.
enum class Topic : std::uint8_t {
  hello = 1,
  welcome,
  request,
  granted,
  prefill_report,
  decode_report
};

constexpr std::uint64_t tag_of(Topic topic, std::uint64_t request = 0) {
  return std::uint64_t{static_cast<std::uint8_t>(topic)} << 56 | request;
}

/// Signals are numbered by request; the upper bit tells acknowledgements from layer groups.
constexpr std::uint64_t acknowledgement_signal(std::uint64_t request) {
  return std::uint64_t{1} << 63 | request;
}
constexpr std::uint64_t layer_group_signal(std::uint64_t request, std::uint64_t group) {
  return request << 32 | group;
}

/// JSON to bytes and back; `protocol_mismatch` if it is none.
Blob to_bytes(const Json& json);
Result<Json> parse(Bytes bytes);

/// A conversation with one peer. Each step may take `timeout`. For several threads; two must not
/// use one tag at a time, as a document may be cut into several messages.
class Exchange {
 public:
  Exchange(Engine& engine, Peer peer, Nanoseconds timeout)
      : engine_(engine), peer_(std::move(peer)), timeout_(timeout) {}

  Result<void> tell(std::uint64_t tag, const Json& document);
  Result<Json> hear(std::uint64_t tag);
  template <typename Document>
  Result<Document> hear_document(std::uint64_t tag) {
    return hear(tag).and_then([](const Json& json) { return from_json<Document>(json); });
  }

  /// Until the peer has gone, at most `timeout`. Whoever spoke last waits, so that its words are
  /// heard before the connection ends.
  void wait_for_goodbye(Nanoseconds timeout);

  /// After a failure: disconnects, so that other threads' waits end too, and returns the failure,
  /// or the end of the peer if that is behind it.
  Error end_after(Error failure);

  Engine& engine() noexcept { return engine_; }
  Nanoseconds timeout() const noexcept { return timeout_; }
  const Peer& peer() const noexcept { return peer_; }
  Deadline deadline() const { return Deadline::in(timeout_); }

 private:
  Engine& engine_;
  Peer peer_;
  Nanoseconds timeout_;
};

}  // namespace weft::tool
