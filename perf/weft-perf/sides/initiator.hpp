// A side that begins transfers: one of those that do it at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>
#include <weft/deadline.hpp>

#include "baseline/carrier.hpp"
#include "load/copies.hpp"
#include "load/load.hpp"
#include "load/operations.hpp"
#include "workload/pattern.hpp"
#include "workload/point.hpp"

namespace weft::perf {

/// What one initiator has to do at one run.
struct Task {
  Point point;               ///< Its rate is this initiator's own share.
  std::uint32_t number = 0;  ///< Which one it is.
  std::uint64_t seed = 1;    ///< No other initiator's.
  bool verify = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, point, number, seed, verify)

/// What one initiator measured.
struct Part {
  Load load;
  std::uint64_t bytes = 0;
  double cpu_seconds = 0;
  Copies copies;                               ///< Of transfers.
  std::map<std::string, std::uint64_t> rails;  ///< Bytes that each carried.
  std::vector<std::uint64_t> transfers;        ///< To each target, since the task was prepared.
  double ceiling_gbps = 0;                     ///< Path::gbps; 0: not known.
  Nanoseconds clock_error{};  ///< How far `load.start` may be off, as the measuring side noted.
};
void to_json(Json& json, const Part& part);
void from_json(const Json& json, Part& part);

/// Has met its targets, with an engine that was opened for points of one Fabric. Each step may
/// take the site's timeout besides the time that is measured.
class Initiator {
 public:
  virtual ~Initiator() = default;

  /// Its engine's, by which the targets know it.
  virtual const std::string& name() const = 0;
  /// Of the rails to the first target.
  virtual const Carrier& carrier() const = 0;

  /// Once the targets have granted memory. Where bytes are verified, each operation of the window
  /// is carried out once.
  virtual Result<void> prepare(const Task& task) = 0;
  /// For so long, which may be no time.
  virtual Result<void> warm_up(Nanoseconds time) = 0;
  virtual Result<Part> measure(Length length) = 0;
  /// At its own memory, once the targets have looked at theirs. The task is over.
  virtual Result<Findings> finish() = 0;
};

}  // namespace weft::perf
