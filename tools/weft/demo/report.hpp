// The report of a run: measured on one side, told to the other, and shown as a table or as JSON.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

#include "demo/protocol.hpp"
#include "look/comparison.hpp"
#include "look/times.hpp"
#include "look/transfer_totals.hpp"

namespace weft::tool {

/// How the bytes went; known to prefill, which posts the operations, and told to decode.
struct Movement {
  std::uint64_t pieces = 0;      ///< Contiguous runs within one page of both sides.
  std::uint64_t operations = 0;  ///< Posted.
  std::vector<weft::Report::RailShare> rails;
  std::string transport;  ///< "one-sided" or "bounce".
  std::string route;      ///< Why these rails.
};

struct RunReport {
  std::string command;
  std::string model, dtype;
  std::string memory;  ///< Of this side's cache, as check_memory() has it.
  std::uint64_t tokens = 0, requests = 0, bytes = 0;
  std::uint32_t layer_groups = 0;
  Spread first_group, request;
  double moving_seconds = 0;  ///< Some request's bytes were under way.
  double total_seconds = 0;   ///< With filling and checking.
  Movement movement;
  std::uint64_t bytes_checked = 0;
  std::uint64_t bytes_wrong = 0;
  std::string problem;                   ///< The first wrong byte; empty if all is right.
  std::optional<Comparison> comparison;  ///< Prefill's, if it was asked to explain.
};

Json to_json(const RunReport& report);
template <>
Result<RunReport> from_json(const Json& json);
/// Several lines, to be printed as they are.
std::string table(const RunReport& report);

/// Collects figures from several threads.
class Measurement {
 public:
  /// One request: when its first byte could move, when its first layer group and all of it had
  /// arrived.
  void request(Clock::time_point start, Clock::time_point first, Clock::time_point end);
  void transfer(const weft::Report& report);
  void pieces(std::uint64_t count);
  void findings(const Findings& findings);
  void problem(const std::string& sentence);

  /// Puts what was collected into a report.
  void into(RunReport& report) const;
  /// Of all transfers.
  TransferTotals ledger() const;

 private:
  struct Interval {
    Clock::time_point start, end;
  };
  static double covered_seconds(std::vector<Interval> intervals);

  mutable std::mutex mutex_;
  std::vector<double> first_, whole_;
  std::vector<Interval> intervals_;
  Movement movement_;
  TransferTotals ledger_;
  Findings findings_;
};

}  // namespace weft::tool
