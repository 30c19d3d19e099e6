#include "services/telemetry.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/process.hpp"
#include "device/file/disk.hpp"
#include "metrics/snapshot.hpp"
#include "path/copies.hpp"
#include "path/describe.hpp"
#include "topo/kernel.hpp"
#include "topo/nic_counters.hpp"

namespace weft::core {
namespace {

/// What was copied of the bytes that this kind of rail has carried in this way.
std::vector<Report::Copied> copied_in(const Capability& record, const PathKind& kind,
                                      const TransferTotals::Carried& carried) {
  PathFacts facts;
  facts.record = record;
  facts.direction = kind.direction;
  facts.asked = kind.transport;
  facts.lending.lent = kind.transport == TransportKind::device_copy;
  facts.same_host = kind.same_host;
  facts.local.place.kind = kind.local;
  facts.remote.place.kind = kind.remote;
  const auto path = describe_path(facts);
  if (!path) return {};
  auto copies = copies_on(*path, carried.bytes, carried.copied);
  for (Report::Copied& each : copies)
    if (each.known == Report::Copied::Known::unknown) each.bytes = carried.bytes;
  return copies;
}

void add_up(std::vector<Report::Copied>& sums, const Report::Copied& copied) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const Report::Copied& each) {
    return each.known == copied.known && each.by == copied.by && each.at_peer == copied.at_peer;
  });
  if (same == sums.end())
    sums.push_back(copied);
  else
    same->bytes += copied.bytes;
}

void read_files(MetricsReading& reading) {
  for (const Disk* disk : Disk::all()) {
    DiskCounters& counters = disk->counters();
    reading.file_devices.push_back({disk->name(), counters.in_flight, counters.corrupt_blocks});
    for (const bool write : {false, true}) {
      const DiskCounters::Way& way = counters.of(write);
      reading.file_ways.push_back({disk->name(),
                                   write,
                                   way.bytes,
                                   way.errors,
                                   way.nanoseconds,
                                   {DiskCounters::bounds.begin(), DiskCounters::bounds.end()},
                                   {way.counts.begin(), way.counts.end()}});
    }
  }
}

Error not_counted() {
  return Error(Code::unavailable, "metrics is off: nothing is counted");
}

}  // namespace

/// Whether the address came from where all processes of a server have it from.
bool Telemetry::shares_address() const {
  return std::any_of(around_.settings.begin(), around_.settings.end(), [](const Setting& setting) {
    return setting.name == "metrics_listen" && setting.source != Setting::Source::call;
  });
}

Result<void> Telemetry::start() {
  if (!around_.ledger || around_.config.metrics_listen.empty()) return {};
  // Without a Call: the endpoint goes before the rails do.
  std::vector<HttpPage> pages;
  pages.push_back({"/metrics", "text/plain; version=0.0.4; charset=utf-8",
                   [this] { return prometheus_text(families_of(read())); }});
  pages.push_back({"/snapshot", "application/json", [this] { return make_snapshot(); }});
  auto endpoint =
      MetricsEndpoint::open(of_this_process(around_.config.metrics_listen),
                            around_.config.allow_unauthenticated_network, std::move(pages));
  if (!endpoint && endpoint.error().code() == Code::unavailable && shares_address()) {
    log(LogLevel::warning, "no metrics over HTTP: {}; give each process an address of its own",
        endpoint.error().message());
    return {};
  }
  if (!endpoint) return fail(std::move(endpoint.error()));
  endpoint_ = std::move(*endpoint);
  address_ = endpoint_->address();
  return {};
}

/// Each byte once, however many grants it is under.
std::uint64_t Telemetry::quarantined_bytes() const {
  const auto segments = around_.segments.quarantined();
  const auto grants = around_.grants.quarantined();
  std::map<const SegmentState*, std::vector<Range>> ranges;
  for (const auto& segment : segments) ranges[segment.get()].push_back({0, segment->size()});
  for (const auto& grant : grants) {
    SegmentState& segment = grant->segment();
    auto& of_segment = ranges[&segment];
    if (segment.users().closed()) {
      of_segment.push_back({0, segment.size()});
      continue;
    }
    const auto& granted = grant->description().ranges;
    of_segment.insert(of_segment.end(), granted.begin(), granted.end());
  }
  std::uint64_t bytes = 0;
  for (const auto& [segment, of_segment] : ranges)
    if (const auto merged = normalise(of_segment, segment->size()))
      for (const Range& range : *merged) bytes += range.length;
  return bytes;
}

MetricsReading Telemetry::read() {
  MetricsReading reading;
  reading.engine = around_.self.name;
  reading.transfers_active = around_.transfers.active();
  reading.segments = around_.segments.count();
  const auto peers = around_.peers.all_up();
  reading.peers_up = peers.size();
  for (const auto& peer : peers) {
    const Unclaimed unclaimed = peer->mailbox.unclaimed();
    reading.unclaimed.bytes += unclaimed.bytes;
    reading.unclaimed.ids += unclaimed.ids;
    reading.unclaimed.peers_held_back += unclaimed.too_many ? 1 : 0;
    const Health health = peer->health();
    reading.peers_slow += health == Health::slow ? 1 : 0;
    reading.peers_silent += health == Health::silent ? 1 : 0;
  }
  reading.unclaimed.dropped = *around_.peers.dropped_arrivals();
  reading.grants_active = around_.grants.held();
  reading.quarantined_bytes = quarantined_bytes();
  reading.rare = around_.ledger->rare().read();
  reading.peers = around_.ledger->traffic().read();
  const auto by_rail = around_.ledger->counters().read();
  for (const auto& rail : around_.rails) {
    const Capability& record = rail->capability();
    const TransferTotals& totals = by_rail[rail->index()];
    reading.transfers += totals;
    for (std::size_t i = 0; i < PathKind::count; ++i)
      if (totals.carried[i].bytes > 0)
        for (const auto& each : copied_in(record, PathKind::at(i), totals.carried[i]))
          add_up(reading.copied, each);
    const Rail::Counters& counters = rail->counters();
    const Rail::Holding holding = rail->holding();
    reading.rails.push_back({.name = rail->name(),
                             .provider = record.provider,
                             .domain = record.domain,
                             .operations = counters.all_operations(),
                             .bytes = counters.all_bytes(),
                             .lost = counters.lost,
                             .reopenings = rail->openings(),
                             .in_flight = counters.in_flight,
                             .away = rail->away(),
                             .message_buffer_bytes = holding.message_bytes,
                             .bounce_buffer_bytes = holding.bounce_bytes,
                             .receives_promised = holding.promised,
                             .receives_posted = holding.posted});
  }
  read_files(reading);
  return reading;
}

std::string Telemetry::make_snapshot() {
  const auto now = Clock::now();
  return snapshot_json(around_.self.name, families_of(read()), around_.ledger->slowest().list(now),
                       now);
}

Info Telemetry::info() {
  Info info;
  info.name = around_.self.name;
  info.incarnation = around_.self.incarnation;
  info.address = around_.self.address;
  info.candidates = around_.rails.candidates();
  info.settings = around_.settings;
  info.fallback = around_.rails.fallback();
  info.libfabric = process_info().libfabric;
  info.transfers_active = around_.transfers.active();
  const CallGate::Call call(around_.gate);
  if (call.refused()) return info;
  for (const auto& rail : around_.rails) {
    const Rail::Counters& counters = rail->counters();
    const Rail::Holding holding = rail->holding();
    info.rails.push_back({.name = rail->name(),
                          .capability = rail->capability(),
                          .thread = around_.workers.index_of(rail->worker()),
                          .operations = counters.all_operations(),
                          .bytes = counters.all_bytes(),
                          .in_flight = counters.in_flight,
                          .lost = counters.lost,
                          .numa_node = around_.rails.locality().numa_node_of(rail->index()),
                          .message_buffer_bytes = holding.message_bytes,
                          .bounce_buffer_bytes = holding.bounce_bytes,
                          .receives_promised = holding.promised,
                          .receives_posted = holding.posted});
  }
  info.segments = around_.segments.count();
  return info;
}

std::vector<NicCounters> Telemetry::nic_counters() {
  std::vector<NicCounters> all;
  const CallGate::Call call(around_.gate);
  if (call.refused()) return all;
  for (const auto& rail : around_.rails) {
    const std::string& nic = rail->capability().domain;
    auto known =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.nic == nic; });
    if (known == all.end()) {
      auto counters = topo::read_nic_counters(topo::sysfs(), nic);
      if (!counters) continue;
      known = all.insert(all.end(), std::move(*counters));
    }
    known->rails.push_back(rail->name());
  }
  return all;
}

Result<std::string> Telemetry::metrics_text() {
  if (!around_.ledger) return fail(not_counted());
  return prometheus_text(families_of(read()));
}

Result<std::string> Telemetry::snapshot() {
  if (!around_.ledger) return fail(not_counted());
  return make_snapshot();
}

Result<std::vector<SlowTransfer>> Telemetry::slowest_transfers() {
  if (!around_.ledger) return fail(not_counted());
  return around_.ledger->slowest().list(Clock::now());
}

}  // namespace weft::core
