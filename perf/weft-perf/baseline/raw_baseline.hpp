// A plain libfabric loop between the two sides, for comparison.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <weft/error.hpp>

#include "baseline/carrier.hpp"
#include "protocol/control.hpp"
#include "raw/process.hpp"

namespace weft::perf {

/// Of which both sides have to know the same.
struct RawTask {
  Point point;
  unsigned endpoints = 1;  ///< On each side.
  RailKind kind;           ///< Of the rails that it is beside.
  Nanoseconds::rep time_ns = 0;
  Nanoseconds::rep timeout_ns = 0;  ///< Of each step, besides that.
  bool verify = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RawTask, point, endpoints, kind, time_ns, timeout_ns, verify)

/// Between a process of this machine and one that the target starts on its own, from host memory to
/// host memory; as many operations in flight as the point's initiators have at all targets. A stop
/// ends it soon, as an error, and so does the target's end.
Result<RawResult> run_raw_baseline(Control& target, const RawTask& task, const Carrier& carrier,
                                   const std::stop_token& stop);

/// The target's end.
class RawService {
 public:
  /// A stop ends what is under way.
  explicit RawService(std::stop_token stop) : stop_(std::move(stop)) {}

  /// On the NICs of this side's engine.
  Result<Json> answer(const Json& question, const Engine& engine);

 private:
  Result<Json> open(const Json& question, const Engine& engine);
  Result<Json> ask(const Json& step);

  const std::stop_token stop_;
  std::shared_ptr<RawProcess> process_;
};

}  // namespace weft::perf
