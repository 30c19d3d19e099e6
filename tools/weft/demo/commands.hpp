// The commands that hand a KV cache over: decode, prefill and demo, which runs both. They return
// the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/kv_models.hpp>

#include "command/ending.hpp"
#include "command/engine_options.hpp"
#include "demo/cache.hpp"

namespace weft::tool {

/// Where a rank is among those that serve a model.
struct Ranks {
  kv::Share tp, pp, dp;
};

/// One side's cache, as far as the command line says.
struct CacheOptions {
  std::optional<std::string> model;  ///< Checked to be known.
  std::optional<kv::DType> dtype;
  kv::LayoutOptions layout;  ///< But for what `ranks` says.
  Ranks ranks;
  std::string memory = "shared";  ///< As check_memory() has it.
  std::uint64_t seed = 1;

  /// For `model` in `dtype`, with as many blocks as asked for, else for `concurrency` requests and
  /// some to spare.
  CacheShape shape(const kv::Model& model, kv::DType dtype, std::uint64_t tokens,
                   std::uint32_t concurrency) const;
};

/// The work of prefill.
struct WorkOptions {
  std::uint64_t tokens = 4096;
  std::uint64_t requests = 8;
  std::uint32_t concurrency = 2;
  std::uint32_t layer_groups = 8;
};

struct DecodeOptions {
  ConsoleOptions console;
  EngineOptions engine;
  CacheOptions cache;
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  bool allow_unauthenticated_network = false;
  std::string metrics;  ///< Where to listen; empty: nowhere.
  std::optional<std::uint64_t> requests;
  Nanoseconds timeout = std::chrono::seconds(60);
  int ready_fd = -1;
};

struct PrefillOptions {
  ConsoleOptions console;
  EngineOptions engine;
  CacheOptions cache;
  WorkOptions work;
  std::string peer;
  bool explain = false;
  std::string metrics;  ///< As decode's.
  Nanoseconds timeout = std::chrono::seconds(60);
};

struct DemoOptions {
  ConsoleOptions console;
  EngineOptions engine;
  CacheOptions cache;  ///< Prefill's, and decode's where the next ones say nothing.
  std::optional<std::uint32_t> decode_blocks, decode_block_tokens;
  std::optional<kv::Order> decode_order;
  std::optional<kv::Placement> decode_placement;
  std::optional<kv::HeadOrder> decode_head_order;
  std::optional<std::string> decode_memory;
  Ranks decode_ranks;
  WorkOptions work;
  bool explain = false;
  Nanoseconds timeout = std::chrono::seconds(60);

  kv::LayoutOptions decode_layout() const;
};

void add_options(CLI::App& command, DecodeOptions& options);
void add_options(CLI::App& command, PrefillOptions& options);
void add_options(CLI::App& command, DemoOptions& options);

/// The inverse of parsing, for child processes.
std::vector<std::string> arguments(const WorkOptions& options);
std::vector<std::string> arguments(const kv::LayoutOptions& options);
std::vector<std::string> arguments(const Ranks& ranks);

int run_decode(const DecodeOptions& options);
int run_prefill(const PrefillOptions& options);
int run_demo(const DemoOptions& options);

}  // namespace weft::tool
