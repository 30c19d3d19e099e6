// What an engine tells of itself: its metrics as text and over HTTP, snapshots, and Info.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "metrics/endpoint.hpp"
#include "metrics/families.hpp"
#include "metrics/ledger.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/call_gate.hpp"
#include "services/grants.hpp"
#include "services/peer_table.hpp"
#include "services/segments.hpp"
#include "services/transfers.hpp"

namespace weft::core {

/// Any thread asks, and the endpoint's own does while there is one. start() and stop() by the
/// threads that open and close the engine.
class Telemetry {
 public:
  struct Around {
    const Config& config;
    const Introduction& self;
    const std::vector<Setting>& settings;
    CallGate& gate;
    const Rails& rails;
    const Workers& workers;
    const PeerTable& peers;
    const Segments& segments;
    const Grants& grants;
    const Transfers& transfers;
    const std::unique_ptr<Ledger>& ledger;  // null where nothing is to be counted
  };
  explicit Telemetry(const Around& around) : around_(around) {}

  /// Listens, if that is asked for.
  Result<void> start();
  /// Waits for a page that is just being made. Before the rails go.
  void stop() { endpoint_.reset(); }
  /// Where it listens; empty if it does not.
  const std::string& address() const noexcept { return address_; }

  Info info();
  std::vector<NicCounters> nic_counters();
  Result<std::string> metrics_text();
  Result<std::string> snapshot();
  Result<std::vector<SlowTransfer>> slowest_transfers();

 private:
  bool shares_address() const;
  MetricsReading read();
  std::uint64_t quarantined_bytes() const;
  std::string make_snapshot();

  const Around around_;
  std::string address_;
  std::unique_ptr<MetricsEndpoint> endpoint_;
};

}  // namespace weft::core
