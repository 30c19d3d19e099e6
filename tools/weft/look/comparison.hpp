// The declared cost of a path beside the ledgers of its transfers and the counts of the NICs
// have counted meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/nic_counters.hpp>
#include <weft/path.hpp>

#include "common/spread.hpp"
#include "look/transfer_totals.hpp"

namespace weft::tool {

struct Comparison {
  /// A hop of the path, or a copy that it does not have.
  struct Row {
    std::string what;  ///< "host memory → socket buffer"
    std::string by;    ///< "kernel"
    std::string side;  ///< "here", "at the peer"
    /// Bytes that the path has copied there, and the ledger; empty: not known, or no copy.
    std::optional<std::uint64_t> declared, ledger;
    std::string known;  ///< How the ledger knows: "counted"; "no copy" of what a NIC moves.
  };
  /// Bytes of all processes over a NIC, in the direction of the transfers; empty: it does not tell.
  struct Nic {
    std::string name;
    std::optional<std::uint64_t> by_rdma, in_messages, in_all;
  };

  std::string path;  ///< In a sentence.
  std::vector<Row> rows;
  double copies_declared = 0, copies_in_ledger = 0;  ///< Of each byte that was carried.
  std::vector<std::string> rails_declared, rails_used;
  Spread queued, under_way;
  std::uint64_t retries = 0;
  std::vector<Nic> nics;
  std::vector<std::string> differences;  ///< As sentences, with what explains them.
};

/// `nics`: by how much their counters have grown.
Comparison compare(const Path& path, const TransferTotals& ledger,
                   const std::vector<NicCounters>& nics);

/// Several lines, to be printed as they are.
std::string table(const Comparison& comparison);

Json to_json(const Comparison& comparison);
/// Throws Json::exception if it is none.
Comparison comparison_from_json(const Json& json);

}  // namespace weft::tool
