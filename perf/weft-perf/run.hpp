// One point measured once.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <weft/engine.hpp>

#include "control.hpp"
#include "load.hpp"

namespace weft::perf {

struct Run {
  std::uint64_t operations = 0, bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0, peer_cpu_seconds = 0;
  Histogram latency;
  bool overloaded = false;
  Copies copies;
  std::map<std::string, std::uint64_t> rails;  ///< Bytes that each carried.
  Findings findings;                           ///< Of both sides.

  double gigabytes_per_second() const;
  double operations_per_second() const;
};

struct RunOptions {
  Length length;
  Nanoseconds warm_up = std::chrono::milliseconds(200);
  bool verify = false;
  std::uint64_t seed = 1;
};

/// Two engines, of this side and of the target, that were opened for points of one Fabric.
class Session {
 public:
  static Result<Session> open(Control& control, const Site& site, const Point& point);

  /// Whether a point can be measured with these engines.
  bool serves(const Point& point) const;
  Result<Run> measure(const Point& point, const RunOptions& options, const std::atomic<bool>& stop);
  /// libfabric's name of what the rails to the target are of: "net", "shm".
  std::string provider() const;

 private:
  Session(Control& control, const Site& site, const Point& point, Engine engine, Peer peer)
      : control_(control),
        site_(site),
        point_(point),
        engine_(std::move(engine)),
        peer_(std::move(peer)) {}

  Result<Run> move(const Point& point, const RunOptions& options, const std::atomic<bool>& stop);
  Result<Run> talk(const Point& point, const RunOptions& options, const std::atomic<bool>& stop);
  Result<Run> load(Operations& operations, const Work& work, const RunOptions& options,
                   const std::atomic<bool>& stop);
  Result<void> end(Run& run, std::uint64_t signals);
  std::map<std::string, std::uint64_t> rail_bytes() const;

  Control& control_;
  const Site& site_;
  Point point_;
  Engine engine_;
  Peer peer_;
};

}  // namespace weft::perf
