// One point measured once.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>
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
  double ceiling_gbps = 0;                     ///< Path::gbps; 0: not known.

  double gigabytes_per_second() const;
  double operations_per_second() const;
};

struct RunOptions {
  Length length;
  Nanoseconds warm_up = std::chrono::milliseconds(200);
  bool verify = false;
  std::uint64_t seed = 1;
};

/// An engine of this side, and one of each target, that were opened for points of one Fabric.
class Session {
 public:
  /// One target for each control.
  static Result<Session> open(std::vector<Control>& controls, const Site& site, const Point& point,
                              const std::stop_token& stop);

  /// Whether a point can be measured with these engines.
  bool serves(const Point& point) const;
  Result<Run> measure(const Point& point, const RunOptions& options, const std::stop_token& stop);
  /// libfabric's name of what the rails to the first target are of: "net", "shm".
  std::string provider() const;

 private:
  Session(std::vector<Control>& controls, const Site& site, const Point& point, Engine engine)
      : controls_(controls), site_(site), point_(point), engine_(std::move(engine)) {}

  Result<Run> move(const Point& point, const RunOptions& options, const std::stop_token& stop);
  Result<Run> talk(const Point& point, const RunOptions& options, const std::stop_token& stop);
  Result<Run> load(Fanned& operations, Work work, const RunOptions& options,
                   const std::stop_token& stop);
  Result<void> mark();
  Result<void> end(Run& run, const Fanned& operations, std::uint32_t parts);
  std::map<std::string, std::uint64_t> rail_bytes() const;

  std::vector<Control>& controls_;
  const Site& site_;
  Point point_;
  Engine engine_;
  std::vector<Peer> peers_;  // In the order of `controls_`.
};

}  // namespace weft::perf
