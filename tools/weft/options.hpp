// The options of the commands, and the engine's Config out of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "common/credentials.hpp"
#include "common/memory_place.hpp"
#include "demo/cache.hpp"
#include "names.hpp"

namespace weft::tool {

/// How the command talks to people and programs.
struct ConsoleOptions {
  bool json = false;
  bool quiet = false;  ///< With --json: errors go to standard output alone.
  std::string progress = "auto";
};

/// Which rails, how they are used, and by what both sides prove themselves.
struct FabricOptions {
  std::vector<std::string> providers;
  std::vector<std::string> nics;
  unsigned rails = 0;
  unsigned threads = 0;
  std::uint64_t chunk_bytes = 0;
  std::size_t window = 0;
  TransportKind transport = TransportKind::automatic;
  std::string rail_address;
  Credentials credentials;
};

/// One side's cache, as far as the command line says.
struct CacheOptions {
  std::optional<std::string> model;  ///< Checked to be known.
  std::optional<kv::DType> dtype;
  kv::LayoutOptions layout;
  std::uint64_t seed = 1;

  /// For `model` in `dtype`, with as many blocks as asked for, else for `concurrency` requests and
  /// some to spare.
  CacheShape shape(const kv::Model& model, kv::DType dtype, std::uint64_t tokens,
                   std::uint32_t concurrency) const;
};

/// What prefill is to do.
struct WorkOptions {
  std::uint64_t tokens = 4096;
  std::uint64_t requests = 8;
  std::uint32_t concurrency = 2;
  std::uint32_t layer_groups = 8;
};

struct InfoOptions {
  ConsoleOptions console;
  FabricOptions fabric;
};

struct TopoOptions {
  ConsoleOptions console;
  std::string xml, peer_xml;  ///< Files; empty: this machine, no peer.
  std::string svg, png, capture;
};

struct ExplainOptions {
  ConsoleOptions console;
  FabricOptions fabric;
  Place from;
  Destination to;
  Direction direction = Direction::write;
  Priority priority = Priority::normal;
  std::optional<Policy> policy;
  std::string svg;
  double timeout = 60;
};

struct DecodeOptions {
  ConsoleOptions console;
  FabricOptions fabric;
  CacheOptions cache;
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  bool allow_unauthenticated_network = false;
  std::string metrics;  ///< Where to listen; empty: nowhere.
  std::optional<std::uint64_t> requests;
  double timeout = 60;
  int ready_fd = -1;
};

struct PrefillOptions {
  ConsoleOptions console;
  FabricOptions fabric;
  CacheOptions cache;
  WorkOptions work;
  std::string peer;
  bool explain = false;
  std::string metrics;  ///< As decode's.
  double timeout = 60;
};

struct DemoOptions {
  ConsoleOptions console;
  FabricOptions fabric;
  CacheOptions cache;  ///< Prefill's, and decode's where the next ones say nothing.
  std::optional<std::uint32_t> decode_blocks, decode_block_tokens;
  std::optional<kv::Order> decode_order;
  std::optional<kv::Parts> decode_parts;
  std::optional<kv::HeadOrder> decode_head_order;

  kv::LayoutOptions decode_layout() const;
  WorkOptions work;
  bool explain = false;
  double timeout = 60;
};

enum class NixlAction { install, status, uninstall };
inline const Names<NixlAction> nixl_action_names = {{"install", NixlAction::install},
                                                    {"status", NixlAction::status},
                                                    {"uninstall", NixlAction::uninstall}};

struct NixlOptions {
  ConsoleOptions console;
  NixlAction action = NixlAction::status;
  std::string python;  ///< Interpreter or folder of a virtual environment; empty: the usual one.
  std::string as;      ///< A backend's name; empty: Weft's own.
  double timeout = 60;
};

void add_options(CLI::App& command, InfoOptions& options);
void add_options(CLI::App& command, TopoOptions& options);
void add_options(CLI::App& command, ExplainOptions& options);
void add_options(CLI::App& command, DecodeOptions& options);
void add_options(CLI::App& command, PrefillOptions& options);
void add_options(CLI::App& command, DemoOptions& options);
void add_options(CLI::App& command, NixlOptions& options);

Config engine_config(const FabricOptions& options);
Nanoseconds timeout_of(double seconds);

/// The inverse of parsing, for child processes.
std::vector<std::string> arguments(const FabricOptions& options);
std::vector<std::string> arguments(const WorkOptions& options);
std::vector<std::string> arguments(const kv::LayoutOptions& options);

}  // namespace weft::tool
