#include "engine/rails.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/log.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

/// Messages must fit a rail, or it can't be used at all.
Result<void> check_message_size(const Config& config, const Capability& record) {
  const std::uint64_t needed = Messenger::message_bytes(config.max_message);
  if (needed <= record.max_send) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} {} carries messages of {} bytes at most, and max_message "
                          "needs {}",
                          record.provider, record.domain, record.max_send, needed));
}

/// `alone`: its NIC has no other rail.
std::uint64_t chunk_limit(const Config& config, const Capability& record, bool alone) {
  if (config.chunk_bytes > 0) return std::min(config.chunk_bytes, record.max_message);
  return alone && record.best_chunk_alone > 0 ? record.best_chunk_alone : record.best_chunk;
}

/// Of what its caller copies, with who polls to help it: at the end of each one waits for the
/// other.
std::uint64_t at_once_limit(const Config& config, std::uint64_t chunk_limit) {
  // The two threads wait for each other at each end: 1 MiB was 1.08 times as fast as 512 KiB.
  constexpr std::uint64_t best = std::uint64_t{1} << 20;
  return config.chunk_bytes > 0 ? chunk_limit : std::max(chunk_limit, best);
}

Rail::Settings rail_settings(const Config& config, const Capability& record, bool alone) {
  Rail::Settings settings;
  settings.chunk_limit = chunk_limit(config, record, alone);
  settings.at_once_limit = at_once_limit(config, settings.chunk_limit);
  const std::size_t chunks = config.window > 0 ? config.window : record.best_window;
  // All peers together may fill the provider's queue, with room left for messages, and one of them
  // a quarter of that; large chunks stop at as many bytes as were measured to be enough.
  settings.window.all_operations = std::max<std::size_t>(1, record.window / 2);
  const std::size_t most =
      config.window > 0 ? config.window : std::max<std::size_t>(1, record.window / 8);
  settings.window.operations = std::min(most, settings.window.all_operations);
  settings.window.bytes = chunks * settings.chunk_limit;
  if (config.window == 0 && !alone && record.best_window_on_host > 0)
    settings.window.bytes_on_host = record.best_window_on_host * settings.chunk_limit;
  // A little on top rather than taken away: without anything urgent the others lose nothing.
  settings.window.spare_operations = std::max<std::size_t>(1, settings.window.operations / 8);
  settings.window.spare_bytes = std::max<std::size_t>(1, chunks / 8) * settings.chunk_limit;
  settings.window.patience = config.death_after;  // that the peer is dead is found out before
  settings.messages = {config.max_message, config.message_credits};
  settings.bounce.buffer_bytes =
      std::min<std::size_t>(config.bounce_buffer_bytes, Bounce::payload_bytes(record.max_send));
  settings.bounce.buffers = config.bounce_buffers;
  return settings;
}

}  // namespace

Result<void> Rails::open(const Rail::Hooks& hooks, const EndpointDecorator& wrap,
                         Introduction& self) {
  auto discovery = discover_for(config_);
  if (!discovery) return fail(std::move(discovery.error()));
  locality_ = std::move(discovery->here);
  candidates_ = std::move(discovery->found.candidates);
  const Opening opening{hooks, wrap, discovery->wanted};
  const auto& nics = discovery->found.nics;
  Counts opened;
  for (const auto& [nic, candidate] : nics) {
    unsigned& count = opened[nic->provider()];
    // What the provider allocates now comes from the NIC's node.
    const topo::NearNode near(config_.place_threads ? locality_.numa_node_of(candidates_[candidate])
                                                    : -1);
    auto result = open_nic(*nic, count, opening);
    if (result) continue;
    // One NIC of several may be broken, but not silently.
    log(LogLevel::warning, "going on without {} {}: {}", candidates_[candidate].provider,
        candidates_[candidate].domain, result.error().to_string());
    candidates_[candidate].taken = false;
    candidates_[candidate].reason = result.error().to_string();
  }
  if (auto had = check_named_are_had(nics, opened); !had) return had;
  introduce(self);
  std::vector<std::string> in_use;
  for (const auto& [provider, count] : opened)
    if (count > 0) in_use.emplace_back(provider);
  fallback_ = providers::fallback(opening.wanted, in_use);
  if (!fallback_.empty()) log(LogLevel::warning, "a slower way is taken: {}", fallback_);
  return {};
}

/// What was asked for by name and can't be had is an error, never a silent fallback.
Result<void> Rails::check_named_are_had(const std::vector<providers::Taken>& taken,
                                        const Counts& opened) const {
  std::vector<std::string> reasons;
  for (const auto& [nic, index] : taken) {
    const Candidate& candidate = candidates_[index];
    if (candidate.taken) continue;
    reasons.push_back(
        fmt::format("{} {}: {}", candidate.provider, candidate.domain, candidate.reason));
    const auto& nics = config_.nics;
    if (std::find(nics.begin(), nics.end(), candidate.domain) != nics.end())
      return fail(Code::unavailable, reasons.back());
  }
  const bool named = std::any_of(config_.providers.begin(), config_.providers.end(),
                                 [](const std::string& each) { return !each.starts_with('^'); });
  const bool all =
      std::all_of(opened.begin(), opened.end(), [](const auto& each) { return each.second > 0; });
  if (!rails_.empty() && (all || !named)) return {};
  if (reasons.empty())
    for (const Candidate& each : candidates_)
      reasons.push_back(fmt::format("{}: {}", each.provider, each.reason));
  const char* what =
      rails_.empty() ? "no rail could be opened" : "not all providers that were named can be used";
  return fail(Code::unavailable, fmt::format("{}; {}", what, fmt::join(reasons, "; ")));
}

void Rails::introduce(Introduction& self) {
  auto names = std::make_shared<std::vector<std::string>>();
  for (const auto& rail : rails_) {
    names->push_back(rail->name());
    const Capability& record = rail->capability();
    RailAddress& told =
        self.rails.emplace_back(RailAddress{record.provider, record.protocol, record.address_format,
                                            record.same_host_only, rail->endpoint().address()});
    locality_.add_rail(record, kinds_.emplace_back(core::kind_of(told)));
    told.mbps =
        static_cast<std::uint32_t>(std::clamp(locality_.gbps_of(rail->index()), 0.0, 1e6) * 1000);
  }
  names_ = std::move(names);
}

/// Opens as many rails on it as are best, or asked for; all or none. `count`: those of its
/// provider.
Result<void> Rails::open_nic(const providers::Nic& nic, unsigned& count, const Opening& opening) {
  std::vector<std::unique_ptr<Rail>> opened;
  std::size_t wanted_rails = 1;
  while (opened.size() < wanted_rails) {
    auto endpoint = nic.open();
    if (!endpoint) return fail(std::move(endpoint.error()));
    if (opening.wrap) *endpoint = opening.wrap(std::move(*endpoint));
    const Capability& record = (*endpoint)->capability();
    if (const std::string why = providers::reject_reason(record, opening.wanted); !why.empty())
      return fail(Code::unavailable, why);
    if (auto fits = check_message_size(config_, record); !fits) return fits;
    wanted_rails = config_.rails > 0 ? config_.rails : keeps_to_one(record) ? 1 : record.best_rails;
    const auto settings = rail_settings(config_, record, wanted_rails == 1);
    const auto index = static_cast<std::uint32_t>(rails_.size() + opened.size());
    opened.push_back(
        std::make_unique<Rail>(index, fmt::format("{}:{}", nic.provider(), count + opened.size()),
                               std::move(*endpoint), settings, opening.hooks));
  }
  count += static_cast<unsigned>(opened.size());
  std::move(opened.begin(), opened.end(), std::back_inserter(rails_));
  return {};
}

/// On few cores, where one thread of the caller drives all rails: each further rail would wake a
/// thread of the peer's that takes the core the caller needs. With two rails such a caller fell to
/// 0.72 to 0.93 of its speed from 1 MiB on.
bool Rails::keeps_to_one(const Capability& record) const {
  return config_.progress == Progress::manual && !record.fills_alone &&
         !topo::cores_for_two_rails();
}

std::vector<std::size_t> Rails::serving(const Place& place) const {
  if (!config_.register_everywhere) return locality_.serving(place);
  std::vector<std::size_t> all(rails_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Rail* Rails::find(std::string_view name) const {
  const auto found = std::find_if(rails_.begin(), rails_.end(),
                                  [&](const auto& each) { return each->name() == name; });
  return found == rails_.end() ? nullptr : found->get();
}

void Rails::shut() {
  for (const auto& rail : rails_) rail->shut();
}

bool Rails::settle(Deadline deadline) {
  bool settled = true;
  for (const auto& rail : rails_) settled = rail->settle(deadline) && settled;
  return settled;
}

}  // namespace weft::core
