#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "weights/plan/catalog.hpp"
#include "weights/plan/layout.hpp"
#include "weights/plan/loads.hpp"
#include "weights/plan/prediction.hpp"
#include "weights/plan/router.hpp"

namespace weft::weights {

namespace {

/// By how much a chain must be faster: ranks that depend on each other are more that can fail. A
/// guess.
constexpr double worth_a_chain = 1.05;
/// Of a direct plan, before it has to be faster by this factor. Guesses.
constexpr double most_direct_pieces = 1e6;
constexpr double worth_many_pieces = 1.5;

void count_in(const Loads& loads, const Transfer& transfer, Plan& plan) {
  const bool published = transfer.from.side == Side::publisher;
  Load& from = (published ? plan.publishers : plan.subscribers)[transfer.from.rank];
  Load& to = plan.subscribers[transfer.to];
  const bool on_host = loads.on_host(transfer.from, transfer.to);
  (on_host ? from.sent_on_host : from.sent) += transfer.bytes;
  (on_host ? to.received_on_host : to.received) += transfer.bytes;
  ++from.transfers_sent;
  ++to.transfers_received;
  plan.bytes += transfer.bytes;
  if (published) plan.published += transfer.bytes;
  plan.chunks = std::max(plan.chunks, transfer.chunk + 1);
  plan.hops = std::max(plan.hops, transfer.hop + 1);
}

void share_by_nics(const std::vector<Rank>& ranks, std::vector<Load>& loads) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::uint64_t nics = ranks[r].nics;
    loads[r].sent_by_nic = (loads[r].sent + nics - 1) / nics;
    loads[r].received_by_nic = (loads[r].received + nics - 1) / nics;
  }
}

std::vector<PairTotal> pair_totals(const World& world, const Loads& loads,
                                   const std::vector<Transfer>& transfers) {
  const std::size_t subscribers = world.subscribers.size();
  std::unordered_map<std::uint64_t, std::size_t> indices;
  std::vector<PairTotal> totals;
  for (const Transfer& transfer : transfers) {
    const std::uint64_t sender =
        std::uint64_t{transfer.from.rank} * 2 + (transfer.from.side == Side::subscriber ? 1 : 0);
    const auto [it, fresh] = indices.try_emplace(sender * subscribers + transfer.to, totals.size());
    if (fresh)
      totals.push_back({transfer.from, transfer.to, loads.on_host(transfer.from, transfer.to)});
    PairTotal& total = totals[it->second];
    ++total.transfers;
    total.pieces += transfer.pieces.size();
    total.bytes += transfer.bytes;
  }
  std::sort(totals.begin(), totals.end(), [](const PairTotal& a, const PairTotal& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  return totals;
}

Result<Plan> plan_for(const World& world, const Catalog& catalog, const PlanOptions& options,
                      FanOut fan_out) {
  auto transfers = Router(world, catalog, options, fan_out).route();
  if (!transfers) return fail(std::move(transfers.error()));
  const Loads loads(world);
  Plan plan;
  plan.fan_out = fan_out;
  plan.transfers = std::move(*transfers);
  plan.publishers.resize(world.publishers.size());
  plan.subscribers.resize(world.subscribers.size());
  for (const Transfer& transfer : plan.transfers) count_in(loads, transfer, plan);
  share_by_nics(world.publishers, plan.publishers);
  share_by_nics(world.subscribers, plan.subscribers);
  plan.pairs = pair_totals(world, loads, plan.transfers);
  plan.predicted_seconds = predict(world, loads, plan.transfers, options);
  return plan;
}

bool has_replicas(const Catalog& catalog) {
  for (const Tensor& tensor : catalog.tensors())
    for (const Slice& sink : tensor.sinks)
      if (sink.holders.size() > 1) return true;
  return false;
}

/// Seconds that a direct plan takes at least: publishers send to each subscriber all that it wants.
double least_direct(const World& world, const Loads& loads) {
  double speed = 0, bytes = 0, longest = 0;
  for (const Rank& rank : world.publishers) speed += nic_speed(rank);
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t r = 0; r < world.publishers.size(); ++r)
    hosts.push_back(loads.host_of({Side::publisher, r}));
  std::sort(hosts.begin(), hosts.end());
  for (std::uint32_t r = 0; r < world.subscribers.size(); ++r) {
    // What needs no NIC is not counted.
    if (std::binary_search(hosts.begin(), hosts.end(), loads.host_of({Side::subscriber, r})))
      continue;
    double wanted = 0;
    for (const Shard& shard : world.subscribers[r].shards)
      wanted += static_cast<double>(bytes_of(shard));
    longest = std::max(longest, wanted / nic_speed(world.subscribers[r]));
    bytes += wanted;
  }
  return speed > 0 ? std::max(bytes / speed, longest) : 0;
}

/// Whether a direct plan has so many pieces that it takes long to make and to post. About: its
/// publishers send in the same pieces, as often as there are replicas.
bool is_long(const Plan& chain) {
  double pieces = 0;
  for (const PairTotal& pair : chain.pairs)
    if (pair.from.side == Side::publisher) pieces += static_cast<double>(pair.pieces);
  return pieces * static_cast<double>(chain.bytes) >
         most_direct_pieces * static_cast<double>(chain.published);
}

Result<Plan> faster_plan(const World& world, const Catalog& catalog, const PlanOptions& options) {
  if (!has_replicas(catalog)) return plan_for(world, catalog, options, FanOut::direct);
  auto chain = plan_for(world, catalog, options, FanOut::chain);
  if (!chain) return chain;
  const double least = least_direct(world, Loads(world));
  if (least > chain->predicted_seconds) return chain;
  if (is_long(*chain) && chain->predicted_seconds < least * worth_many_pieces) return chain;
  auto direct = plan_for(world, catalog, options, FanOut::direct);
  if (!direct) return chain;
  return direct->predicted_seconds <= chain->predicted_seconds * worth_a_chain ? direct : chain;
}

Result<void> check(const PlanOptions& options) {
  if (options.chunk_bytes > 0 && options.seconds_per_transfer >= 0 && options.host_gbps > 0)
    return {};
  return fail(Code::invalid_argument,
              fmt::format("chunk_bytes is {}, host_gbps {} and seconds_per_transfer {}; the first "
                          "two must be above 0, and the last not below",
                          options.chunk_bytes, options.host_gbps, options.seconds_per_transfer));
}

}  // namespace

Result<Plan> plan(const World& world, const PlanOptions& options) {
  if (auto ok = check(options); !ok) return fail(std::move(ok.error()));
  const auto catalog = Catalog::of(world);
  if (!catalog) return fail(catalog.error());
  if (options.fan_out == FanOut::automatic) return faster_plan(world, *catalog, options);
  return plan_for(world, *catalog, options, options.fan_out);
}

}  // namespace weft::weights
