// The results of a sweep as a document: what was measured where and how.
#pragma once

#include <string>
#include <vector>

#include "measure/point_result.hpp"

namespace weft::perf {

/// How a sweep came to its end.
struct Ending {
  std::string how = "complete";  ///< Or "interrupted", "failed".
  std::string why;
};

/// The whole as one document, which says what was measured where and how.
Json document(const std::vector<PointResult>& results, const Json& settings, const Json& machines,
              const Ending& ending);

/// The version of that document; readers refuse others.
constexpr int document_version = 1;

/// A document out of a file. `not_found`, or `protocol_mismatch` if it is none.
Result<Json> read_document(const std::string& path);

}  // namespace weft::perf
