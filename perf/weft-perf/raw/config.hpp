/// @file
/// What a plain libfabric loop does, and what it measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
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

enum class RawOperation : std::uint8_t {
  write,
  read,
  message,  ///< Tagged, until the target's empty answer has come.
};
NLOHMANN_JSON_SERIALIZE_ENUM(RawOperation, {{RawOperation::write, "write"},
                                            {RawOperation::read, "read"},
                                            {RawOperation::message, "message"}})

/// A NIC or interface by libfabric's names; those that are empty are of any.
struct RawNic {
  std::string domain;  ///< Of the domain or of the device: "lo", "rdmap0s6".
  std::string fabric = {};

  bool operator==(const RawNic&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawNic, domain, fabric)

/// A stream of transfers, each `size` bytes long, of which `window` are in flight. A transfer is
/// cut into chunks; every endpoint has a thread that takes the next chunk of the stream when it has
/// fewer than `endpoint_window` in flight. The memory is the host's.
struct RawConfig {
  std::string provider = "net";  ///< "net", "tcp", "tcp;ofi_rxm", "verbs;ofi_rxm", "efa", "shm".
  /// Of this side: the first endpoint is on the first of them, the next on the next, and so on
  /// round and round. Empty: all are where `bind` is.
  std::vector<RawNic> nics;
  std::string bind = "127.0.0.1";  ///< An IP address of this side; not for shm.
  RawOperation operation = RawOperation::write;
  std::size_t size = 1 << 20;
  std::size_t chunk = 0;  ///< 0: a transfer is one operation, as every message is.
  std::uint64_t window = 4;
  unsigned endpoints = 1;  ///< On each side, each with fabric, domain, queue and thread of its own.
  std::uint64_t endpoint_window = 16;
  /// Memory walked on each side, rounded down to whole transfers, one at least; 0: `window`
  /// transfers, which stay in the cache where they fit. Messages take it for all that the endpoints
  /// can have in flight instead.
  std::size_t buffer_bytes = 0;
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  std::chrono::milliseconds::rep max_ms = 500;  ///< Time measured; a fifth of it warms up before.
  /// Of each step, and while it goes on for the next completion.
  std::chrono::milliseconds::rep timeout_ms = 30'000;
  bool delivery_complete = true;  ///< Of writes.
  /// Offer FI_MR_VIRT_ADDR though the provider does without; offsets from zero otherwise.
  bool virtual_addresses = false;
  Waiting initiator = Waiting::poll;
  Waiting target = Waiting::poll;
  std::chrono::microseconds::rep spin_us = 0;      ///< With `Waiting::sleep`.
  bool yield = false;                              ///< Give the core away after an empty read.
  bool verify = false;                             ///< Compare every byte moved at the end.
  bool latencies = false;                          ///< Note how long each operation takes.
  std::map<std::string, std::string> environment;  ///< Set on both sides before libfabric starts.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawConfig, provider, nics, bind, operation, size, chunk, window,
                                   endpoints, endpoint_window, buffer_bytes, max_bytes, max_ms,
                                   timeout_ms, delivery_complete, virtual_addresses, initiator,
                                   target, spin_us, yield, verify, latencies, environment)

/// `invalid_argument` where there is nothing to do, or more than a loop can.
Result<void> check(const RawConfig& config);

/// Transfers that have a place of their own in the memory, of each side.
std::size_t positions_of(const RawConfig& config);

/// What a side takes, with what it notes of each operation. At most the largest number.
std::uint64_t memory_of(const RawConfig& config);

struct RawResult {
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  double seconds = 0;
  double initiator_cpu_seconds = 0;
  double target_cpu_seconds = 0;    ///< With the warm-up, a fifth more.
  double gigabytes_per_second = 0;  ///< 10^9 bytes.
  /// Of an operation, from before it is posted until its completion was read; 0 if none was noted.
  std::uint64_t p50_ns = 0, p99_ns = 0;
  std::uint64_t covered = 0;  ///< Bytes from the start of the memory that the last transfers moved.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawResult, bytes, operations, seconds, initiator_cpu_seconds,
                                   target_cpu_seconds, gigabytes_per_second, p50_ns, p99_ns,
                                   covered)

}  // namespace weft::perf
