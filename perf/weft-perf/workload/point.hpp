// What is measured at one point of a sweep.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <weft/engine.hpp>

namespace weft {

NLOHMANN_JSON_SERIALIZE_ENUM(Progress,
                             {{Progress::threads, "threads"}, {Progress::manual, "manual"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Priority, {{Priority::normal, "normal"},
                                        {Priority::latency, "latency"},
                                        {Priority::bulk, "bulk"}})

namespace perf {

using Json = nlohmann::json;

enum class Operation : std::uint8_t {
  write,
  read,
  signal,   ///< A write that raises a signal at the target.
  message,  ///< A tagged message, until the target's empty answer is here.
  mixed,    ///< Half of the window writes, and the other half reads.
};
NLOHMANN_JSON_SERIALIZE_ENUM(Operation, {{Operation::write, "write"},
                                         {Operation::read, "read"},
                                         {Operation::signal, "signal"},
                                         {Operation::message, "message"},
                                         {Operation::mixed, "mixed"}})

/// How the pieces of an operation lie, on both sides.
enum class Pattern : std::uint8_t {
  contiguous,  ///< One behind the other: the engine moves them as one.
  strided,     ///< With as much room between two of them as one takes.
  random,      ///< In another order on each side, with room between them.
};
NLOHMANN_JSON_SERIALIZE_ENUM(Pattern, {{Pattern::contiguous, "contiguous"},
                                       {Pattern::strided, "strided"},
                                       {Pattern::random, "random"}})

/// Between GPUs of one host.
enum class GpuPath : std::uint8_t {
  lent,    ///< One of them copies straight, where it can.
  staged,  ///< Through host memory, as between hosts.
};
NLOHMANN_JSON_SERIALIZE_ENUM(GpuPath, {{GpuPath::lent, "lent"}, {GpuPath::staged, "staged"}})

/// How the engines of both sides are set up; 0 leaves it to them. See Config.
struct Fabric {
  std::string provider;  ///< Empty: whatever the engines choose.
  unsigned rails = 0;    ///< For each NIC.
  unsigned nics = 4;     ///< At most.
  unsigned threads = 0;
  std::uint64_t chunk = 0;
  std::size_t rail_window = 0;
  std::uint64_t bounce_bytes = 0;  ///< Of a buffer that bytes are staged in ...
  std::size_t bounce_buffers = 0;  ///< ... and how many there are for each peer of a rail.
  GpuPath gpu_path = GpuPath::lent;
  weft::Progress progress = weft::Progress::threads;  ///< Of this side's engine.

  bool operator==(const Fabric&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fabric, provider, rails, nics, threads, chunk,
                                                rail_window, bounce_bytes, bounce_buffers, gpu_path,
                                                progress)

/// The KV cache of one request, from a rank of one serving engine to a rank of another.
struct KvShape {
  std::string model;  ///< Empty: no such shape, but pieces of equal size.
  std::string dtype = "bf16";
  std::uint64_t tokens = 0;
  std::uint32_t block_tokens = 16;
  std::uint32_t layer_groups = 1;  ///< Transfers that a request is cut into.
  std::uint32_t tp = 1;            ///< Ranks of the side that has the cache.
  std::uint32_t peer_tp = 1;       ///< Ranks of the side that gets it.
  std::uint32_t pp = 1;            ///< Pipeline stages of the side that has the cache ...
  std::uint32_t peer_pp = 1;       ///< ... and of the side that gets it.

  bool operator==(const KvShape&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KvShape, model, dtype, tokens, block_tokens,
                                                layer_groups, tp, peer_tp, pp, peer_pp)

/// Of a request, unless it is said otherwise.
constexpr std::uint32_t usual_layer_groups = 8;

/// What is moved, and how much of it at a time.
struct Work {
  Operation operation = Operation::write;
  std::uint64_t size = 0;    ///< Bytes of one operation, in all its pieces together.
  std::uint32_t pieces = 1;  ///< Of an operation, as long as each other.
  Pattern pattern = Pattern::contiguous;
  std::uint32_t window = 1;  ///< Operations in flight, each with memory of its own.
  std::uint32_t batch = 1;   ///< Operations begun one after the other once there is room for all.
  double rate = 0;           ///< Open-loop arrivals per second (Poisson); 0: a closed loop.
  std::string memory = "host", peer_memory = "host";  ///< See check_memory().
  KvShape kv;
  Priority priority = Priority::normal;  ///< Of each transfer.
  /// All operations in flight between two sides use the same memory, as if there were one.
  bool one_buffer = false;

  bool operator==(const Work&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Work, operation, size, pieces, pattern, window,
                                                batch, rate, memory, peer_memory, kv, priority,
                                                one_buffer)

/// Whether ledgers of engines tell of it: messages are no transfers.
constexpr bool in_ledger(const Work& work) {
  return work.operation != Operation::message;
}

struct Point {
  Fabric fabric;
  Work work;
  std::uint32_t peers = 1;       ///< Targets, each with a window of its own.
  std::uint32_t initiators = 1;  ///< At once, each with an engine and windows of its own.

  bool operator==(const Point&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Point, fabric, work, peers, initiators)

constexpr std::uint32_t most_initiators = 64, most_targets = 64;
/// Of the warm-up, and of the measured load.
constexpr auto longest_run = std::chrono::hours(24);

/// Why it can't be measured, whatever the machine is like. Also for points that come from outside.
Result<void> check(const Point& point);

/// What Config gets from it.
void apply(const Fabric& fabric, Config& config);

/// "write", "random"...
template <typename Enum>
std::string name_of(Enum value) {
  return Json(value).get<std::string>();
}

}  // namespace perf
}  // namespace weft
