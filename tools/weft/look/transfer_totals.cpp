#include "look/transfer_totals.hpp"

#include <algorithm>
#include <chrono>

namespace weft::tool {
namespace {

using Copied = weft::Report::Copied;

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

bool same_copy(const Copied& a, const Copied& b) {
  return a.known == b.known && a.by == b.by && a.at_peer == b.at_peer;
}

}  // namespace

void TransferTotals::add(const weft::Report& report) {
  asked += report.bytes;
  carried += report.bytes_done;
  retries += report.retries;
  for (const auto& share : report.rails) rails.insert(share.rail);
  queued.push_back(seconds(report.queued));
  under_way.push_back(seconds(report.carried));
  // Two copies on one side by one mover stay two: each goes to the next one that is like it.
  auto from = copied.begin();
  for (const Copied& each : report.copied) {
    const auto like =
        std::find_if(from, copied.end(), [&](const Copied& sum) { return same_copy(sum, each); });
    if (like == copied.end()) {
      from = copied.insert(copied.end(), each) + 1;
    } else {
      like->bytes += each.bytes;
      from = like + 1;
    }
  }
}

}  // namespace weft::tool
