// How long the KV cache of a request would take, by what was measured.
#pragma once

#include <optional>
#include <string>

#include "common/layout.hpp"
#include "workload/point.hpp"

namespace weft::perf {

/// A request, and the time that its first token takes without the transfer, if that is known.
struct PlanOptions {
  KvShape kv;
  std::optional<double> prefill_seconds;
  std::string fabric;  ///< A file of results.
  bool json = false;
};

/// What a transfer is of the time to the first token.
struct OfTtft {
  double share = 0;  ///< If the transfer begins after the prefill.
  /// What is left of it if each layer group goes as soon as it is computed, all taking equally
  /// long.
  double overlapped_seconds = 0, overlapped_share = 0;
};

/// By one series of points that differ in size alone.
struct Prediction {
  std::string series;
  std::uint64_t request_bytes = 0;  ///< From rank 0 to rank 0; other pairs move theirs meanwhile.
  std::uint64_t operation_bytes = 0;
  double seconds = 0;               ///< Of the transfer.
  double tail_seconds = 0;          ///< If each operation took what 1 of 100 exceeded.
  std::optional<OfTtft> ttft = {};  ///< Where the prefill's time is known.
  bool beyond =
      false;  ///< The operation is larger than any measured; the largest one's speed holds.
};

/// Bandwidth at the size of a layer group, between measured sizes by straight lines over
/// logarithmic axes. Only series of writes and reads of pieces, with one peer, no rate and nothing
/// wrong, count. A group that is smaller than what was measured is an error, as is a document
/// without such a series.
Result<std::vector<Prediction>> predict(const Json& results, const PlanOptions& options);

/// In lines of `width`.
std::string text_of(const std::vector<Prediction>& predictions, const PlanOptions& options,
                    std::size_t width = tool::line_width());
Json json_of(const std::vector<Prediction>& predictions, const PlanOptions& options);

}  // namespace weft::perf
