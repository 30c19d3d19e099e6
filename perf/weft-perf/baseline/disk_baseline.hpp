// A side's file alone, without a wire: what a point can't be faster than.
#pragma once

#include <stop_token>
#include <weft/error.hpp>

#include "protocol/control.hpp"

namespace weft::perf {

/// Both move as much at a time as the point does, on the machine that has its file.
enum class DiskBy : std::uint8_t {
  weft,  ///< Copies between the file and memory of one engine, by as many threads as the window.
  fio,   ///< fio's job of the same shape.
};
NLOHMANN_JSON_SERIALIZE_ENUM(DiskBy, {{DiskBy::weft, "weft"}, {DiskBy::fio, "fio"}})

/// What both sides have to know.
struct DiskTask {
  Point point;
  DiskBy by = DiskBy::weft;
  Nanoseconds::rep time_ns = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiskTask, point, by, time_ns)

/// GB/s of the file at the target, or else of this side's. `invalid_argument` if the point has
/// none; `not_found` if fio is not installed there.
Result<double> measure_disk(Control& target, const Site& site, const DiskTask& task,
                            const std::stop_token& stop);

/// The target's end.
Result<Json> answer_disk(const Site& site, const Json& question, const std::stop_token& stop);

}  // namespace weft::perf
