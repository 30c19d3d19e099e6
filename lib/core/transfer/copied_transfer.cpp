#include "transfer/copied_transfer.hpp"

#include "peer/peer_state.hpp"
#include "transfer/report.hpp"

namespace weft::core {

Report CopiedTransfer::own_report() const {
  Report report;
  report.state = state();
  report.bytes = report.bytes_done = facts_.copied.bytes;
  report.ranges = facts_.ranges;
  report.runs = facts_.copied.runs;
  report.operations = facts_.copied.operations;
  report.rails.push_back(
      {(*prepared().rail_names)[facts_.rail], report.operations, report.bytes_done});
  report.fallback = prepared().remote->peer()->fallback;
  report.elapsed = report.carried = facts_.ended - facts_.submitted;
  return report;
}

Report CopiedTransfer::report() const {
  Report report = own_report();
  enter_copies(prepared(), host_, prepared().own_copies(facts_.copied.bytes), report);
  return report;
}

}  // namespace weft::core
