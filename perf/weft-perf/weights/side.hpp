// A trainer's or an inference rank's process.
#pragma once

#include <optional>

namespace weft::perf {

/// The role of such a process.
constexpr const char* weights_side_argument = "weft-weights-side";

/// The exit status, if this process was started as one, a helper (common/helper.hpp).
///
/// Its task is {"options", "trains", "number", "leader"}; the answer is {"address"}. Then a trainer
/// hears the "verb" "fill" with the "number" of a content, and "publish" with that of a step
/// ({"seconds", "bytes"}), a rank "check" with that of a content ({"checked", "wrong"}). It ends
/// when nobody speaks any more.
std::optional<int> serve_weights_side(int count, char** words);

}  // namespace weft::perf
