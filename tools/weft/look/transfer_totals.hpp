// The sum of several transfers' ledgers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::tool {

struct TransferTotals {
  std::uint64_t asked = 0, carried = 0;  ///< Bytes.
  /// Each copy in the order in which the path has it, over all transfers.
  std::vector<weft::Report::Copied> copied;
  std::uint64_t retries = 0;
  std::set<std::string> rails;            ///< That carried some of it.
  std::vector<double> queued, under_way;  ///< In seconds, of each transfer.

  void add(const weft::Report& report);
};

}  // namespace weft::tool
