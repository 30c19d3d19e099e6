/// @file
/// A plain libfabric loop without an engine: the baseline that Weft is compared to.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <weft/error.hpp>

namespace weft::perf {

/// Of one loop.
constexpr unsigned max_endpoints = 16;

/// How a thread waits for its completion queue.
enum class Waiting : std::uint8_t {
  poll,     ///< FI_WAIT_NONE, read without pause.
  poll_fd,  ///< FI_WAIT_FD, read without pause all the same.
  sleep,    ///< FI_WAIT_FD, sleep on the descriptor after `RawConfig::spin` without a completion.
};
NLOHMANN_JSON_SERIALIZE_ENUM(Waiting, {{Waiting::poll, "poll"},
                                       {Waiting::poll_fd, "poll_fd"},
                                       {Waiting::sleep, "sleep"}})

/// A stream of transfers, each `size` bytes long, of which `window` are in flight. A transfer is
/// cut into chunks; every endpoint has a thread that takes the next chunk of the stream when it has
/// fewer than `endpoint_window` in flight.
struct RawConfig {
  std::string provider = "net";  ///< "net", "tcp", "tcp;ofi_rxm", "shm".
  std::string bind = "127.0.0.1";
  bool read = false;  ///< Read from the target instead of writing to it.
  std::size_t size = 1 << 20;
  std::size_t chunk = 0;  ///< 0: a transfer is one operation.
  std::uint64_t window = 4;
  unsigned endpoints = 1;  ///< On each side, each with fabric, domain, queue and thread of its own.
  std::uint64_t endpoint_window = 16;
  /// Memory walked on each side, rounded down to whole transfers, one at least; 0: `window`
  /// transfers, which stay in the cache where they fit.
  std::size_t buffer_bytes = 0;
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  std::chrono::milliseconds::rep max_ms = 500;  ///< Time measured; a fifth of it warms up before.
  std::chrono::milliseconds::rep timeout_ms = 30'000;  ///< For all of it, from start to end.
  bool delivery_complete = true;
  bool virtual_addresses = false;  ///< Offer FI_MR_VIRT_ADDR; zero-based offsets otherwise.
  Waiting initiator = Waiting::poll;
  Waiting target = Waiting::poll;
  std::chrono::microseconds::rep spin_us = 0;      ///< With `Waiting::sleep`.
  bool yield = false;                              ///< Give the core away after an empty read.
  bool verify = false;                             ///< Compare every byte moved at the end.
  bool latencies = false;                          ///< Note how long each operation takes.
  std::map<std::string, std::string> environment;  ///< Set on both sides before libfabric starts.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawConfig, provider, bind, read, size, chunk, window, endpoints,
                                   endpoint_window, buffer_bytes, max_bytes, max_ms, timeout_ms,
                                   delivery_complete, virtual_addresses, initiator, target, spin_us,
                                   yield, verify, latencies, environment)

struct RawResult {
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  double seconds = 0;
  double initiator_cpu_seconds = 0;
  double target_cpu_seconds = 0;    ///< With the warm-up, a sixth more.
  double gigabytes_per_second = 0;  ///< 10^9 bytes.
  /// Of an operation, from before it is posted until its completion was read; 0 if none was noted.
  std::uint64_t p50_ns = 0, p99_ns = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawResult, bytes, operations, seconds, initiator_cpu_seconds,
                                   target_cpu_seconds, gigabytes_per_second, p50_ns, p99_ns)

/// Runs both sides as new processes of this executable, so that neither meets the libfabric state,
/// environment or threads of the caller. Needs `serve_raw_side` at the start of `main`. A stop ends
/// both and is `cancelled`.
Result<RawResult> run_raw(const RawConfig& config, const std::stop_token& stop = {});

/// The exit status, if this process was started by `run_raw` as one of the two sides.
std::optional<int> serve_raw_side(int argc, char** argv);

}  // namespace weft::perf
