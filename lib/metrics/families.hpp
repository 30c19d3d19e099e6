// An engine's counters, gauges and histograms, as Prometheus has them.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>
#include <weft/transfer.hpp>

#include "metrics/totals.hpp"

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
  };
  std::string engine;  // its name
  std::uint64_t transfers_active = 0, segments = 0, peers_up = 0, peers_slow = 0, peers_silent = 0;
  TransferTotals transfers;
  std::vector<Report::Copied> copied;  // `unknown`: with the bytes that may have been
  std::vector<Rail> rails;
};

using MetricFamilies = std::vector<prometheus::MetricFamily>;

MetricFamilies families_of(const MetricsReading& reading);

/// In Prometheus's text format, version 0.0.4.
std::string prometheus_text(const MetricFamilies& families);

}  // namespace weft::core
