// The options of a command's engine.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "common/credentials.hpp"

namespace weft::tool {

/// How long goodbyes and closing may take.
constexpr auto closing_time = std::chrono::seconds(2);

/// Which rails, how they are used, and by what both sides prove themselves.
struct EngineOptions {
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

void add_engine(CLI::App& command, EngineOptions& options);

Config engine_config(const EngineOptions& options);

/// The inverse of parsing, for child processes.
std::vector<std::string> arguments(const EngineOptions& options);

}  // namespace weft::tool
