// The table for people, a line for each point.
#include <fmt/format.h>

#include <algorithm>

#include "baseline/baseline.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "report/results.hpp"

namespace weft::perf {
namespace {

std::string microseconds(Nanoseconds time) {
  const double value = static_cast<double>(time.count()) / 1e3;
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string ratio_text(const Interval& ratio) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.middle, ratio.low, ratio.high);
}

std::string rails_text(const Summary& sum) {
  std::string text;
  for (const auto& [rail, share] : sum.rails)
    text += fmt::format("{}{} {:.0f} %", text.empty() ? ": " : ", ", rail, 100 * share);
  return text;
}

/// Of initiators that are not all on this machine.
std::string places_text(const PointResult& result, const Summary& sum) {
  std::string text;
  for (std::size_t i = 0; i < sum.shares.size(); ++i)
    text +=
        fmt::format("{}{} {:.1f} %", i == 0 ? "  from " : ", ",
                    tool::printable(place_of(result.runs.back().shares[i])), 100 * sum.shares[i]);
  return text;
}

/// Whether the provider's bytes go through sockets of the kernel's; by libfabric's name for it.
bool by_sockets(const PointResult& result) {
  return result.provider == "net" || result.provider.starts_with("tcp");
}

/// The first of those machines' congestion controls that holds streams back; empty: none. BBR may
/// take a loopback stream for slower than it is, and paces it accordingly.
std::string holds_back(const Json& machines) {
  const Json facts = machines.flatten();
  for (const auto& [path, value] : facts.items())
    if (path.ends_with("/congestion_control") && value.is_string())
      if (auto name = value.get<std::string>(); name.starts_with("bbr")) return name;
  return {};
}

}  // namespace

std::string table_head(const std::vector<std::string>& baselines) {
  std::string text = fmt::format(
      "{:<44} {:>21} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12} {:>6}", "", "GB/s", "Gb/s",
      "op/s", "p50 us", "p90", "p99", "p99.9", "max", "CPU s/GB", "copies");
  for (const std::string& name : baselines) {
    text += fmt::format(" {:>18}", "to " + name);
    if (notes_latency(name))
      text += fmt::format(" {:>18} {:>18}", "p50 to " + name, "p99 to " + name);
  }
  return text + "  by\n";
}

std::string table_row(const PointResult& result) {
  const Summary sum = summarize(result);
  const Spread& speed = sum.gigabytes;
  std::string text =
      fmt::format("{:<44} {:>21} {:>7.2f} {:>9.0f}", title(result.point),
                  fmt::format("{:.3f} ({:.3f}-{:.3f})", speed.median, speed.least, speed.greatest),
                  8 * speed.median, sum.operations.median);
  for (const double share : {0.5, 0.9, 0.99, 0.999})
    text += fmt::format(" {:>8}", microseconds(sum.latency.quantile(share)));
  text += fmt::format(" {:>8} {:>12} {:>6}", microseconds(sum.latency.greatest()),
                      fmt::format("{:.2f}+{:.2f}", sum.cpu, sum.peer_cpu),
                      !in_ledger(result.point.work) ? "-"
                                                    : fmt::format("{:.2f}{}", sum.copies.per_byte,
                                                                  sum.copies.known ? "" : "+"));
  for (const auto& [name, ratio] : sum.ratios) {
    text += fmt::format(" {:>18}", ratio_text(ratio));
    if (const auto latency = sum.latency_ratios.find(name); latency != sum.latency_ratios.end())
      text += fmt::format(" {:>18} {:>18}", ratio_text(latency->second.p50),
                          ratio_text(latency->second.p99));
  }
  text += fmt::format("  {}{}", result.provider, rails_text(sum));
  if (is_spread(result))
    text += places_text(result, sum);
  else if (result.point.initiators > 1)
    text += fmt::format("  each {:.1f}-{:.1f} %", 100 * sum.least_share, 100 * sum.greatest_share);
  if (sum.latency.count() == 0) text += "  NO OPERATION CAME";
  if (sum.overloaded) text += "  OVERLOADED";
  if (sum.ended_by_time) text += "  ENDED BY TIME";
  if (sum.findings.wrong > 0)
    text += fmt::format("  {} BYTES WRONG: {}", sum.findings.wrong,
                        tool::printable(sum.findings.first));
  return text + "\n";
}

std::string table_foot(const std::vector<PointResult>& results, const Json& machines) {
  std::uint64_t checked = 0;
  bool ratios = false, overloaded = false, ended_by_time = false, shared = false, spread = false;
  double clock_error = 0;
  for (const PointResult& result : results) {
    ratios = ratios || !result.baselines.empty();
    shared = shared || result.point.initiators > 1;
    spread = spread || is_spread(result);
    for (const Run& run : result.runs) {
      for (const Share& share : run.shares) clock_error = std::max(clock_error, share.clock_error);
      checked += run.findings.checked;
      overloaded = overloaded || run.overloaded;
      ended_by_time = ended_by_time || run.ended_by_time;
    }
  }
  std::string text = fmt::format(
      "GB/s (10^9 bytes): median (least-greatest) of the repeats. Latencies: of all operations of "
      "all repeats,\nat most {:.1f} % above what they stand for; max is exact. CPU: this side + "
      "the "
      "target. Copies: of each byte, on both\nsides together, by the engines' ledgers; + means "
      "that "
      "there may be more.\n",
      100 * Histogram::error_bound);
  if (ratios) text += "Ratios: median of the repeats' (bootstrap, 95 % confidence).\n";
  if (shared)
    text +=
        "Several initiators: their bytes from the first begin of any to the last end of any; each: "
        "what the slowest and the\nfastest had of all their speeds. CPU: all initiators + all "
        "targets.\n";
  if (spread)
    text += fmt::format(
        "From: where each initiator is, and what it had of all their speeds (median). Clocks of "
        "others are set against this\nmachine's before each run, {:.3f} ms off at most.\n",
        1e3 * clock_error);
  if (overloaded)
    text +=
        "OVERLOADED: operations came faster than they could be served; the latencies are those "
        "of a queue that grew,\nand what waited in it when the time was over was not carried "
        "out.\n";
  if (ended_by_time)
    text +=
        "ENDED BY TIME: the time (--time) was over before so many operations (--count) had "
        "begun.\n";
  if (const std::string name = holds_back(machines);
      !name.empty() && std::any_of(results.begin(), results.end(), by_sockets))
    text += fmt::format(
        "The kernel's congestion control {} may hold a stream at a third of its speed over "
        "loopback, once in a while and then\nfor long (sysctl net.ipv4.tcp_congestion_control; "
        "reno does not).\n",
        tool::printable(name));
  if (checked > 0) text += fmt::format("{} were compared.\n", tool::binary_bytes(checked));
  return text;
}

}  // namespace weft::perf
