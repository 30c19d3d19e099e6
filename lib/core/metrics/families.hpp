// An engine's counters, gauges and histograms, as Prometheus has them.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <weft/transfer.hpp>

#include "metrics/rare_events.hpp"
#include "metrics/totals.hpp"
#include "peer/peer_traffic.hpp"

namespace weft::core {

/// As labels have them.
std::string label_of(Direction direction);
std::string label_of(Priority priority);

/// An engine's counters at one moment.
struct MetricsReading {
  struct Rail {
    std::string name, provider, domain;
    std::uint64_t operations = 0, bytes = 0, lost = 0, reopenings = 0, in_flight = 0;
    bool away = false;
    std::uint64_t message_buffer_bytes = 0, bounce_buffer_bytes = 0;
    std::uint64_t receives_promised = 0, receives_posted = 0;
  };
  std::string engine;  // its name
  std::uint64_t transfers_active = 0, segments = 0, peers_up = 0, peers_slow = 0, peers_silent = 0;
  std::uint64_t grants_active = 0, quarantined_bytes = 0;
  struct Unclaimed {
    std::uint64_t bytes = 0, ids = 0, peers_held_back = 0, dropped = 0;
  };
  Unclaimed unclaimed;
  TransferTotals transfers;
  std::vector<Report::Copied> copied;  // `unknown`: with the bytes that may have been
  std::vector<Rail> rails;
  /// Reads, or writes, of files on one device, by this process.
  struct FileWay {
    std::string device;
    bool write = false;
    std::uint64_t bytes = 0, errors = 0, nanoseconds = 0;
    std::vector<std::uint64_t> bounds, counts;  // of the times, in nanoseconds: one count more
  };
  struct FileDevice {
    std::string device;
    std::uint64_t in_flight = 0, corrupt_blocks = 0;
  };
  std::vector<FileWay> file_ways;
  std::vector<FileDevice> file_devices;
  RareCounts rare;
  std::map<std::string, PeerTraffic::Totals> peers;  // by name
};

using MetricFamilies = std::vector<prometheus::MetricFamily>;

MetricFamilies families_of(const MetricsReading& reading);

/// In Prometheus's text format, version 0.0.4.
std::string prometheus_text(const MetricFamilies& families);

}  // namespace weft::core
