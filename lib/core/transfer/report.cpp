#include "transfer/report.hpp"

#include "transfer/host.hpp"
#include "transfer/prepared.hpp"

namespace weft::core {

void enter_copies(const PreparedState& prepared, TransferHost& host, std::uint64_t own,
                  Report& report) {
  if (const auto engine = prepared.engine.lock()) host.enter_copies(prepared, own, report);
  if (report.bytes_done == 0) return;
  double copied = 0;
  for (const Report::Copied& each : report.copied) copied += static_cast<double>(each.bytes);
  report.amplification = copied / static_cast<double>(report.bytes_done);
}

}  // namespace weft::core
