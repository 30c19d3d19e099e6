// A plain TCP stream between the two sides, for comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::perf {

/// Reads one stream to its end, on a thread of its own.
class StreamSink {
 public:
  /// Listens at a local address and a port of the system's; reads up to `bytes` at a time.
  static Result<StreamSink> open(const std::string& address, std::size_t bytes,
                                 Nanoseconds timeout);
  StreamSink(StreamSink&&) noexcept;
  StreamSink& operator=(StreamSink&&) noexcept;
  ~StreamSink();

  std::uint16_t port() const noexcept;
  /// Waits for the end of the stream. How many bytes there were.
  Result<std::uint64_t> finish();

 private:
  struct State;
  explicit StreamSink(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct StreamResult {
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< Until the other side has read the last of them.
};

/// Writes `bytes` at a time, for as long as `time`. `cancelled` by a stop.
Result<StreamResult> stream_to(const std::string& address, std::uint16_t port, std::size_t bytes,
                               Nanoseconds time, Nanoseconds timeout,
                               const std::stop_token& stop = {});

}  // namespace weft::perf
