// A trainer's or an inference rank's process.
#pragma once

#include <optional>

namespace weft::perf {

/// The first argument of such a process; the second is the descriptor that it hears.
constexpr const char* weights_side_argument = "weft-weights-side";

/// The exit status, if this process was started as one. It hears lines, and answers each with a
/// line of JSON on standard output: {"error"}, or what was asked for.
///
/// The first line is {"options", "trains", "number", "leader"}; the answer is {"address"}. Then a
/// trainer hears "fill CONTENT" and "publish STEP" ({"seconds", "bytes"}), a rank "check CONTENT"
/// ({"checked", "wrong"}). It ends when nobody speaks any more.
std::optional<int> serve_weights_side(int count, char** words);

}  // namespace weft::perf
