// The commands that look at a machine, at paths, at caches and at weights: info, topo, explain, kv
// and weights. They return the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/kv_models.hpp>
#include <weft/path.hpp>
#include <weft/weights_models.hpp>

#include "command/ending.hpp"
#include "command/engine_options.hpp"

namespace weft::tool {

struct InfoOptions {
  ConsoleOptions console;
  EngineOptions engine;
  bool verbose = false;
};

struct TopoOptions {
  ConsoleOptions console;
  std::string xml, peer_xml;  ///< Files; empty: this machine, no peer.
  std::string svg, png, capture;
};

struct ExplainOptions {
  ConsoleOptions console;
  EngineOptions engine;
  Place memory;
  std::string peer;  ///< "host:port"; empty: another engine in this process.
  std::optional<Place> peer_memory;
  Direction direction = Direction::write;
  Priority priority = Priority::normal;
  std::optional<Policy> policy;
  std::string svg;
  Nanoseconds timeout = std::chrono::seconds(60);
};

struct KvOptions {
  ConsoleOptions console;
  std::string model;   ///< A known name, or the path of a config.json.
  std::string server;  ///< Whose layout; empty: as `layout` has it.
  kv::LayoutOptions layout;
  kv::Share pp;
  std::uint32_t peer_tp = 1, peer_pp = 1;
  std::uint64_t tokens = 4096;
};

struct WeightsOptions {
  ConsoleOptions console;
  std::string action;
  std::vector<std::string> files;  ///< With ranks; or else `config` describes them.
  std::string config;              ///< The path of a config.json.
  weights::Parallelism trainers, ranks;
  std::uint32_t ranks_per_host = 8;
  std::optional<std::uint32_t> nics;
  std::optional<double> gbps;
  std::string result;  ///< A file of weft-perf's, whose best point tells what a rank gets.
  weights::PlanOptions plan;
};

/// The names of engines of `weft explain` begin so, which tells other commands that nobody will
/// transfer anything.
constexpr std::string_view explainer_prefix = "weft-explain-";

void add_options(CLI::App& command, InfoOptions& options);
void add_options(CLI::App& command, TopoOptions& options);
void add_options(CLI::App& command, ExplainOptions& options);
void add_options(CLI::App& command, KvOptions& options);
void add_options(CLI::App& command, WeightsOptions& options);

int run_info(const InfoOptions& options);
int run_topo(const TopoOptions& options);
int run_explain(const ExplainOptions& options);
int run_kv(const KvOptions& options);
int run_weights(const WeightsOptions& options);

}  // namespace weft::tool
