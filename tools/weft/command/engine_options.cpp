#include "command/engine_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/options.hpp"

namespace weft::tool {

void add_engine(CLI::App& command, EngineOptions& options) {
  constexpr std::uint64_t most_rails = 64, largest_chunk = std::uint64_t{1} << 40,
                          largest_window = 1 << 20;
  OptionGroup group(command, "Engine");
  group.list("--providers", options.providers, doc_of("providers"));
  add_nics(group, options.nics);
  group.number("--rails", options.rails, Multiples::decimal, {0, most_rails},
               "Rails for each NIC; 0: automatic");
  group.number("--threads", options.threads, Multiples::decimal, {0, most_rails},
               "Progress threads; 0: one for each rail");
  group.number("--chunk", options.chunk_bytes, Multiples::binary, {0, largest_chunk},
               "Largest operation of a rail, in bytes; 0: automatic");
  group.number("--rail-window", options.window, Multiples::decimal, {0, largest_window},
               "Operations in flight on a rail; 0: automatic");
  group.choice("--transport", options.transport, transport_names,
               "One-sided writes and reads, or messages through bounce buffers (bounce), or copies "
               "between GPUs");
  add_rail_address(group, options.rail_address);
  add_credentials(command, options.credentials);
}

Config engine_config(const EngineOptions& options) {
  Config config;
  config.providers = options.providers;
  config.nics = options.nics;
  config.rails = options.rails;
  config.threads = options.threads;
  config.chunk_bytes = options.chunk_bytes;
  config.window = options.window;
  config.transport = options.transport;
  config.rail_address = options.rail_address;
  apply(options.credentials, config);
  return config;
}

std::vector<std::string> arguments(const EngineOptions& options) {
  std::vector<std::string> list = {"--rails",       std::to_string(options.rails),
                                   "--threads",     std::to_string(options.threads),
                                   "--chunk",       std::to_string(options.chunk_bytes),
                                   "--rail-window", std::to_string(options.window),
                                   "--transport",   name_of(transport_names, options.transport)};
  const auto add_list = [&](const char* name, const std::vector<std::string>& values) {
    if (!values.empty()) list.insert(list.end(), {name, fmt::format("{}", fmt::join(values, ","))});
  };
  add_list("--providers", options.providers);
  add_list("--nics", options.nics);
  if (!options.rail_address.empty())
    list.insert(list.end(), {"--rail-address", options.rail_address});
  const auto credentials = arguments(options.credentials);
  list.insert(list.end(), credentials.begin(), credentials.end());
  return list;
}

}  // namespace weft::tool
