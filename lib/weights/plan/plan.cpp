#include <fmt/format.h>

#include <algorithm>
#include <map>

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

std::vector<PairTotal> pair_totals(const Loads& loads, const std::vector<Transfer>& transfers) {
  std::map<std::pair<Party, std::uint32_t>, PairTotal> pairs;
  for (const Transfer& transfer : transfers) {
    PairTotal& total = pairs[{transfer.from, transfer.to}];
    ++total.transfers;
    total.pieces += transfer.pieces.size();
    total.bytes += transfer.bytes;
  }
  std::vector<PairTotal> totals;
  totals.reserve(pairs.size());
  for (auto& [key, total] : pairs) {
    std::tie(total.from, total.to) = key;
    total.on_host = loads.on_host(total.from, total.to);
    totals.push_back(total);
  }
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
  plan.pairs = pair_totals(loads, plan.transfers);
  plan.predicted_seconds = predict(world, loads, plan.transfers, options);
  return plan;
}

bool has_replicas(const Catalog& catalog, std::uint64_t from_bytes) {
  for (const Tensor& tensor : catalog.tensors())
    for (const Slice& sink : tensor.sinks)
      if (sink.holders.size() > 1 &&
          volume(sink.box.extent) * bytes_of(tensor.sample->dtype) >= from_bytes)
        return true;
  return false;
}

/// Seconds that publishers need at least to send to each subscriber all that it wants.
double least_direct(const World& world, const Loads& loads) {
  double speed = 0, bytes = 0;
  for (const Rank& rank : world.publishers) speed += nic_speed(rank);
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t r = 0; r < world.publishers.size(); ++r)
    hosts.push_back(loads.host_of({Side::publisher, r}));
  std::sort(hosts.begin(), hosts.end());
  for (std::uint32_t r = 0; r < world.subscribers.size(); ++r) {
    // What needs no NIC is not counted.
    if (std::binary_search(hosts.begin(), hosts.end(), loads.host_of({Side::subscriber, r})))
      continue;
    for (const Shard& shard : world.subscribers[r].shards)
      bytes += static_cast<double>(bytes_of(shard));
  }
  return speed > 0 ? bytes / speed : 0;
}

Result<Plan> faster_plan(const World& world, const Catalog& catalog, const PlanOptions& options) {
  if (!has_replicas(catalog, options.chain_from_bytes))
    return plan_for(world, catalog, options, FanOut::direct);
  auto chain = plan_for(world, catalog, options, FanOut::chain);
  // A direct plan of many replicas has many pieces: it is not made in vain.
  if (!chain || least_direct(world, Loads(world)) > chain->predicted_seconds) return chain;
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
