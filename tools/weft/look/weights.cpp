// weft weights plan: who sends which weights to whom.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <weft/weights_models.hpp>

#include "common/input.hpp"
#include "common/layout.hpp"
#include "common/names.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"
#include "look/commands.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;
using nlohmann::json;

/// More rows are told as a number: --json has them all.
constexpr std::size_t most_rows = 64;

/// Says of which file an error is.
auto of_file(const std::string& path) {
  return [path](const Error& error) {
    return Error(error.code(), fmt::format("{}: {}", path, error.message()));
  };
}

Result<weights::World> world_of_files(const std::vector<std::string>& paths) {
  weights::World world;
  for (const std::string& path : paths) {
    auto read = read_input(path).and_then([&](const std::string& text) {
      return weights::world_from_json(text).map_error(of_file(path));
    });
    if (!read) return fail(std::move(read.error()));
    std::move(read->publishers.begin(), read->publishers.end(),
              std::back_inserter(world.publishers));
    std::move(read->subscribers.begin(), read->subscribers.end(),
              std::back_inserter(world.subscribers));
  }
  return world;
}

Result<weights::World> world_of_config(const WeightsOptions& options) {
  const auto model = read_input(options.config).and_then([&](const std::string& text) {
    return weights::from_config(text, options.config).map_error(of_file(options.config));
  });
  if (!model) return fail(model.error());
  const auto ranks = [&](const weights::Parallelism& parallel, const char* name, const char* host) {
    return model->ranks({.parallel = parallel,
                         .name = name,
                         .host = host,
                         .ranks_per_host = options.ranks_per_host});
  };
  auto trainers = ranks(options.trainers, "trainer", "train");
  if (!trainers) return fail(std::move(trainers.error()));
  auto workers = ranks(options.ranks, "rank", "serve");
  if (!workers) return fail(std::move(workers.error()));
  return weights::World{std::move(*trainers), std::move(*workers)};
}

/// The greatest rate among the points of a weft-perf result, in Gb/s.
Result<double> measured_gbps(const std::string& path) {
  const auto text = read_input(path);
  if (!text) return fail(text.error());
  const json file = json::parse(*text, nullptr, false);
  double greatest = 0;
  try {
    if (file.at("format") == "weft-perf")
      for (const json& point : file.at("points"))
        greatest =
            std::max(greatest, point.at("gigabytes_per_second").at("median").get<double>() * 8);
  } catch (const json::exception&) {
    greatest = 0;
  }
  if (greatest > 0) return greatest;
  return fail(Code::protocol_mismatch, fmt::format("{} holds no results of weft-perf", path));
}

Result<weights::World> world_of(const WeightsOptions& options) {
  auto world = options.config.empty() ? world_of_files(options.files) : world_of_config(options);
  if (!world) return world;
  std::optional<double> together;
  if (!options.result.empty()) {
    const auto measured = measured_gbps(options.result);
    if (!measured) return fail(measured.error());
    together = *measured;
  }
  for (auto* side : {&world->publishers, &world->subscribers})
    for (weights::Rank& rank : *side) {
      if (options.nics) rank.nics = *options.nics;
      if (options.gbps) rank.gbps = *options.gbps;
      if (together) rank.gbps = *together / rank.nics;
    }
  return world;
}

std::size_t hosts_of(const std::vector<weights::Rank>& ranks) {
  std::set<std::string> hosts;
  std::size_t alone = 0;
  for (const weights::Rank& rank : ranks) {
    if (rank.host.empty())
      ++alone;
    else
      hosts.insert(rank.host);
  }
  return hosts.size() + alone;
}

std::size_t pieces_of(const weights::Plan& plan) {
  std::size_t pieces = 0;
  for (const weights::PairTotal& pair : plan.pairs) pieces += pair.pieces;
  return pieces;
}

const weights::Rank& rank_of(const weights::World& world, weights::Party party) {
  return (party.side == weights::Side::publisher ? world.publishers
                                                 : world.subscribers)[party.rank];
}

std::string side_line(const char* name, const std::vector<weights::Rank>& ranks) {
  return hanging(
      fmt::format("  {:<12}", name),
      fmt::format("{} on {}", counted(ranks.size(), "rank"), counted(hosts_of(ranks), "host")));
}

std::string rest_text(std::size_t rows) {
  if (rows <= most_rows) return {};
  return fmt::format("  and {} more, which --json shows\n", grouped(rows - most_rows));
}

std::string ranks_text(const char* title, const std::vector<weights::Rank>& ranks,
                       const std::vector<weights::Load>& loads) {
  std::string text = fmt::format("\n{:<22} {:>13} {:>10} {:>10} {:>10} {:>10} {:>10}\n", title,
                                 "NICs", "sends", "by NIC", "receives", "by NIC", "on host");
  for (std::size_t r = 0; r < std::min(ranks.size(), most_rows); ++r) {
    const weights::Load& load = loads[r];
    text += fmt::format("  {:<20} {:>13} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
                        printable(ranks[r].name),
                        fmt::format("{} x {}", ranks[r].nics, bit_rate(ranks[r].gbps)),
                        binary_bytes(load.sent), binary_bytes(load.sent_by_nic),
                        binary_bytes(load.received), binary_bytes(load.received_by_nic),
                        binary_bytes(load.sent_on_host + load.received_on_host));
  }
  return text + rest_text(ranks.size());
}

std::string pairs_text(const weights::World& world, const weights::Plan& plan) {
  std::string text = fmt::format("\n{:<22}    {:<20} {:>10} {:>10} {:>10}\n", "from", "to", "bytes",
                                 "pieces", "transfers");
  for (std::size_t i = 0; i < std::min(plan.pairs.size(), most_rows); ++i) {
    const weights::PairTotal& pair = plan.pairs[i];
    text += fmt::format(
        "  {:<20} -> {:<20} {:>10} {:>10} {:>10}{}\n", printable(rank_of(world, pair.from).name),
        printable(world.subscribers[pair.to].name), binary_bytes(pair.bytes), grouped(pair.pieces),
        grouped(pair.transfers), pair.on_host ? "  on one host" : "");
  }
  return text + rest_text(plan.pairs.size());
}

std::string text_of(const weights::World& world, const weights::Plan& plan) {
  std::string text = "Plan of weights\n";
  text += side_line("trainers", world.publishers);
  text += side_line("inference", world.subscribers);
  text += hanging("  fan-out     ", name_of(fan_out_names, plan.fan_out));
  text += hanging("  bytes       ",
                  fmt::format("{} arrive, of which trainers send {}", binary_bytes(plan.bytes),
                              binary_bytes(plan.published)));
  text += hanging("  transfers   ",
                  fmt::format("{} in {} and {}, {}", grouped(plan.transfers.size()),
                              counted(plan.chunks, "chunk"), counted(plan.hops, "hop"),
                              counted(pieces_of(plan), "piece")));
  text += hanging("  predicted   ", fmt::format("{} at least: all NICs at full speed, no switch "
                                                "that limits them",
                                                duration(plan.predicted_seconds)));
  text += ranks_text("trainers", world.publishers, plan.publishers);
  text += ranks_text("inference ranks", world.subscribers, plan.subscribers);
  return text + pairs_text(world, plan);
}

OrderedJson json_of(const std::vector<weights::Rank>& ranks,
                    const std::vector<weights::Load>& loads) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t r = 0; r < ranks.size(); ++r)
    list.push_back({{"name", ranks[r].name},
                    {"host", ranks[r].host},
                    {"nics", ranks[r].nics},
                    {"gbps", ranks[r].gbps},
                    {"sent", loads[r].sent},
                    {"received", loads[r].received},
                    {"sent_by_nic", loads[r].sent_by_nic},
                    {"received_by_nic", loads[r].received_by_nic},
                    {"sent_on_host", loads[r].sent_on_host},
                    {"received_on_host", loads[r].received_on_host}});
  return list;
}

OrderedJson json_of(const weights::World& world, const weights::Plan& plan) {
  OrderedJson pairs = OrderedJson::array();
  for (const weights::PairTotal& pair : plan.pairs)
    pairs.push_back({{"from", rank_of(world, pair.from).name},
                     {"to", world.subscribers[pair.to].name},
                     {"bytes", pair.bytes},
                     {"pieces", pair.pieces},
                     {"transfers", pair.transfers},
                     {"on_host", pair.on_host}});
  return {{"fan_out", name_of(fan_out_names, plan.fan_out)},
          {"bytes", plan.bytes},
          {"published", plan.published},
          {"chunks", plan.chunks},
          {"hops", plan.hops},
          {"transfers", plan.transfers.size()},
          {"pieces", pieces_of(plan)},
          {"predicted_seconds", plan.predicted_seconds},
          {"trainers", json_of(world.publishers, plan.publishers)},
          {"ranks", json_of(world.subscribers, plan.subscribers)},
          {"pairs", std::move(pairs)}};
}

}  // namespace

int run_weights(const WeightsOptions& options) {
  const auto world = world_of(options);
  if (!world) return end_with("weights", options.console, world.error());
  const auto plan = weights::plan(*world, options.plan);
  if (!plan) return end_with("weights", options.console, plan.error());
  print(options.console.json ? dump(json_of(*world, *plan)) + "\n" : text_of(*world, *plan));
  return exit_success;
}

}  // namespace weft::tool
