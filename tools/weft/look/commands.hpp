// The commands that look at a machine and at paths: info, topo and explain. They return the exit
// code.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <weft/path.hpp>

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

/// The names of engines of `weft explain` begin so, which tells other commands that nobody will
/// transfer anything.
constexpr std::string_view explainer_prefix = "weft-explain-";

void add_options(CLI::App& command, InfoOptions& options);
void add_options(CLI::App& command, TopoOptions& options);
void add_options(CLI::App& command, ExplainOptions& options);

int run_info(const InfoOptions& options);
int run_topo(const TopoOptions& options);
int run_explain(const ExplainOptions& options);

}  // namespace weft::tool
