// What the engine is compared with, measured right before it.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "baseline/carrier.hpp"
#include "load/load.hpp"
#include "protocol/control.hpp"

namespace weft::perf {

struct Baseline {
  enum class Kind : std::uint8_t {
    contiguous,  ///< By the same engines, each operation's bytes in one piece.
    wire,        ///< By the same engines, from the CPU's memory to the CPU's memory.
    raw,         ///< A plain libfabric loop to the first target.
    memcpy,      ///< Copies from memory to memory of this machine.
    socket,      ///< A plain TCP stream to the target, of one initiator.
    disk,        ///< The point's file, copied by Weft on its machine alone.
    fio,         ///< The point's file, by fio's job of the same shape.
  };
  Kind kind = Kind::raw;
  unsigned threads = 1;  ///< Of memcpy; endpoints of raw, with a thread each. For each initiator.

  /// As it was given: "memcpy:4".
  std::string name() const;
};

/// "contiguous", "wire", "raw", "raw:2", "memcpy", "memcpy:4", "socket", "disk", "fio".
Result<Baseline> parse_baseline(std::string_view text);

/// The sides of points that a baseline is to be compared with.
struct Sites {
  std::uint64_t initiators = 1, targets = 1;
  bool initiators_elsewhere = false;  ///< Not all are on this machine.
  bool target_elsewhere = false;      ///< The first one is on another.
  unsigned cores = 0;                 ///< Of this machine; 0: not known.
};

/// Why its ratio would mean nothing for such points, if so: a baseline moves as much at a time as
/// they do, from where they are.
Result<void> check(const Baseline& baseline, const Sites& sites);

/// Whether a baseline of that name tells how long its operations take.
bool notes_latency(std::string_view name);

/// What `contiguous` measures beside a point: as many bytes in flight, one piece for each
/// operation, and no rate.
Point contiguous(Point point);
/// What `wire` measures beside it.
Point without_files(Point point);

/// Whether the engines of the point measure it, as a point of its own.
constexpr bool is_point(Baseline::Kind kind) {
  return kind == Baseline::Kind::contiguous || kind == Baseline::Kind::wire;
}

struct Measured {
  double gigabytes_per_second = 0;  ///< 10^9 bytes.
  Nanoseconds p50{}, p99{};         ///< Of an operation, if notes_latency().
};

/// What a baseline is measured beside.
struct Beside {
  const Point& point;
  const Carrier& carrier;  ///< Of the point's bytes.
  Nanoseconds time{};      ///< How long it is measured.
  bool verify = false;     ///< Of raw: every byte that was moved is compared.
};

/// Of the others, with the size of the point and as many operations in flight as its initiators
/// have at all targets: over raw's one target, by an endpoint for each initiator, or several; each
/// of memcpy's threads has as many buffers. Those passed check(). A stop ends it soon, as an error.
Result<Measured> measure(const Baseline& baseline, Control& control, const Site& site,
                         const Beside& beside, const std::stop_token& stop);

}  // namespace weft::perf
