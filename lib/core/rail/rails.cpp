#include "rail/rails.hpp"

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

Result<void> check_packet(const Capability& record) {
  if (record.max_send >= Messenger::least_packet) return {};
  return fail(
      Code::unavailable,
      fmt::format("{} {} carries messages of {} bytes at most, and at least {} are needed",
                  record.provider, record.domain, record.max_send, Messenger::least_packet));
}

RailOptions rail_options(const Config& config) {
  return {.rails = config.rails,
          .chunk_bytes = config.chunk_bytes,
          .window = config.window,
          .cores = topo::cores().usable(),
          .polls = config.polls};
}

/// How many receives a rail may post for requests and answers through bounce buffers, with as many
/// buffers to send from. The rest of its queue is for messages, which peers can't do without.
std::size_t bounce_receives(const Config& config, const Capability& record,
                            const Bounce::Limits& limits) {
  // One for a request and one for an answer.
  constexpr std::size_t least = 2;
  const std::uint64_t message = Bounce::message_bytes(limits.buffer_bytes);
  const std::size_t most = std::max<std::size_t>(config.bounce_memory / message / 2, least);
  if (record.receive_queue == 0) return most;
  return std::min(most, std::max(record.receive_queue / 4, least));
}

Rail::Settings rail_settings(const Config& config, const Capability& record) {
  Rail::Settings settings;
  settings.plan = plan_rails(record, rail_options(config));
  settings.plan.window.patience = config.suspect_after;
  settings.bounce.buffer_bytes =
      std::min<std::size_t>(config.bounce_buffer_bytes, Bounce::payload_bytes(record.max_send));
  settings.bounce.buffers = config.bounce_buffers;
  settings.bounce.most = bounce_receives(config, record, settings.bounce);
  settings.messages = {config.max_message, config.message_credits, record.max_send,
                       Messenger::first_credits(config.message_credits)};
  if (record.receive_queue > 0)
    settings.messages.receives =
        record.receive_queue - std::min(record.receive_queue, settings.bounce.most);
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
    told.packet = static_cast<std::uint32_t>(rail->messenger().packet_bytes());
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
    if (auto fits = check_packet(record); !fits) return fits;
    const auto settings = rail_settings(config_, record);
    wanted_rails = settings.plan.rails;
    const auto index = static_cast<std::uint32_t>(rails_.size() + opened.size());
    opened.push_back(
        std::make_unique<Rail>(index, fmt::format("{}:{}", nic.provider(), count + opened.size()),
                               std::move(*endpoint), settings, opening.hooks));
  }
  count += static_cast<unsigned>(opened.size());
  std::move(opened.begin(), opened.end(), std::back_inserter(rails_));
  return {};
}

std::vector<std::size_t> Rails::serving(const Place& place) const {
  if (!config_.register_everywhere) return locality_.serving(place);
  std::vector<std::size_t> all(rails_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::map<RailKind, std::vector<std::size_t>> Rails::by_kind(const std::vector<Rail*>& rails) const {
  std::map<RailKind, std::vector<std::size_t>> kinds;
  for (const Rail* rail : rails) kinds[kind_of(*rail)].push_back(rail->index());
  return kinds;
}

Rail* Rails::find(std::string_view name) const {
  const auto found = std::find_if(rails_.begin(), rails_.end(),
                                  [&](const auto& each) { return each->name() == name; });
  return found == rails_.end() ? nullptr : found->get();
}

Result<Descriptor> Rails::show(const DescriptorName& name) const {
  Result<Descriptor> shown = fail(Code::not_found, "no rail shows such a descriptor");
  for (const auto& rail : rails_)
    if (shown = rail->endpoint().show(name); shown || shown.error().code() != Code::not_found)
      break;
  return shown;
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
