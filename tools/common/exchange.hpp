// Carries JSON documents between two engines as tagged messages and signals.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <weft/engine.hpp>

namespace weft::tool {

using Json = nlohmann::json;

/// JSON to bytes and back; `protocol_mismatch` if it is none.
Blob to_bytes(const Json& json);
Result<Json> parse(Bytes bytes);

/// Checks a document from outside: `protocol_mismatch` if it is no such document.
template <typename Document>
Result<Document> from_json(const Json& json);

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

  /// Waits until the peer has gone, at most `timeout`. The side that spoke last waits, so that its
  /// words are heard before the connection ends.
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
