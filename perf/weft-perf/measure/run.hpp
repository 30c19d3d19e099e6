// One point measured once.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "protocol/control.hpp"
#include "sides/initiator.hpp"

namespace weft::perf {

/// What one of several initiators had of a run.
struct Share {
  std::uint64_t operations = 0, bytes = 0;
  double begun = 0;  ///< Seconds after the first of them.
  double seconds = 0;
  double clock_error = 0;  ///< By which `begun` may be wrong, as its clock is another machine's.
  std::string at = {};     ///< Where it is; empty: on this machine.

  double gigabytes_per_second() const;
};

struct Run {
  std::uint64_t operations = 0, bytes = 0;
  double seconds = 0;  ///< From the first begin of any initiator to the last end of any.
  double cpu_seconds = 0, peer_cpu_seconds = 0;
  Histogram latency;
  bool overloaded = false;
  bool ended_by_time = false;  ///< Before all operations that were asked for had begun.
  Copies copies;
  std::map<std::string, std::uint64_t> rails;  ///< Bytes that each carried.
  Findings findings;                           ///< Of all sides.
  double ceiling_gbps = 0;                     ///< Path::gbps of the first; 0: not known.
  std::vector<Share> shares;                   ///< One for each initiator.

  double gigabytes_per_second() const;
  double operations_per_second() const;
};

/// Nothing is empty; what the targets know is not in it. `asked`: for so many operations.
Run run_of(const std::vector<Part>& parts, std::uint64_t asked);

struct RunOptions {
  Length length;  ///< Its operations are those of all initiators together.
  Nanoseconds warm_up = std::chrono::milliseconds(200);
  bool verify = false;
  std::uint64_t seed = 1;
};

/// What one of so many initiators has to do: its share of the operations and of the rate.
Length length_of(Length all, std::uint32_t initiator, std::uint32_t initiators);
Task task_of(Point point, const RunOptions& options, std::uint32_t initiator);

/// Another process that initiates.
struct OtherInitiator {
  Control control;
  std::string at = {};  ///< Its address; empty: this process has started it, on this machine.
};

/// The processes that take part besides this one. More than one initiator at a time are others.
struct Sides {
  std::vector<Control> targets;
  std::vector<OtherInitiator> initiators;
  bool one_is_this = true;  ///< A single initiator is this process, not the first of the others.
};

/// Whether engines that were opened for one point can measure the other: there are as many of them,
/// with its Fabric, room for its messages, and the NICs near to its GPUs.
bool same_engines(const Point& one, const Point& other);

/// An engine of each initiator, and one of each target, that were opened for a point.
class Session {
 public:
  /// With the first of the targets, and of the other initiators or with this process.
  static Result<Session> open(Sides& sides, const Site& site, const Point& point,
                              const std::stop_token& stop);

  /// Whether a point can be measured with these engines.
  bool serves(const Point& point) const { return same_engines(point, point_); }
  Result<Run> measure(const Point& point, const RunOptions& options);
  /// Of the first initiator's rails to the first target.
  const Carrier& carrier() const { return initiators_.front()->carrier(); }

 private:
  using Step = std::function<Result<void>(std::uint32_t)>;

  Session(Sides& sides, Point point) : sides_(sides), point_(std::move(point)) {}

  bool is_this_process() const { return point_.initiators == 1 && sides_.one_is_this; }
  std::span<Control> targets() { return std::span(sides_.targets).first(point_.peers); }

  Result<std::vector<std::string>> open_targets();
  Result<void> open_initiators(const Site& site, const std::vector<std::string>& addresses,
                               const std::stop_token& stop);
  Result<void> all_at_once(const Step& step);
  Result<void> prepare(const Point& point, const RunOptions& options);
  Result<std::vector<Part>> load(const RunOptions& options);
  Result<void> mark(Nanoseconds warm_up);
  Result<void> end(const std::vector<Part>& parts, Run& run);
  Result<void> finish(Run& run);

  Sides& sides_;
  Point point_;
  std::vector<std::unique_ptr<Initiator>> initiators_;
};

}  // namespace weft::perf
