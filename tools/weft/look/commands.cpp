#include "look/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "common/memory_place.hpp"
#include "common/names.hpp"
#include "common/options.hpp"

namespace weft::tool {
namespace {

/// Complaints name the terms as they are typed, with hyphens.
Result<Policy> parse_typed_policy(const std::string& text) {
  return parse_policy(text).map_error([](const Error& error) {
    std::string sentence = error.message();
    std::replace(sentence.begin(), sentence.end(), '_', '-');
    return Error(error.code(), sentence);
  });
}

Result<double> parse_gbps(const std::string& text) {
  constexpr double most = 1e6;
  char* end = nullptr;
  const double gbps = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && gbps > 0 && gbps <= most) return gbps;
  return fail(Code::invalid_argument,
              fmt::format("{} is no number above 0 and up to {}", text, most));
}

}  // namespace

void add_options(CLI::App& command, InfoOptions& options) {
  OptionGroup output(command, "Output");
  output.flag("--verbose", options.verbose,
              "Show all settings, and the complete capability record of each rail");
  add_console(command, options.console, false);
  add_engine(command, options.engine);
}

void add_options(CLI::App& command, TopoOptions& options) {
  OptionGroup machine(command, "Machine"), files(command, "Files");
  CLI::Option* xml = machine.file("--xml", options.xml,
                                  "Show the machine that this file of hwloc's describes instead of "
                                  "this one; WEFT_TOPO_XML does the same");
  CLI::Option* peer =
      machine.file("--peer-xml", options.peer_xml,
                   "Show as well which NICs would talk to which of this other machine");
  CLI::Option* svg = files.file(
      "--svg", options.svg, "Draw the machine too; -: to standard output, alone; needs Graphviz");
  CLI::Option* png = files.file("--png", options.png, "Likewise, in pixels");
  files
      .file("--capture", options.capture,
            "Only write this machine to a file for --xml, to be attached to a bug report; without "
            "serial numbers, addresses of NICs, or names of hosts")
      ->excludes(xml, peer, svg, png);
  add_console(command, options.console, false);
}

void add_options(CLI::App& command, ExplainOptions& options) {
  OptionGroup transfer(command, "Transfer"), files(command, "Files");
  transfer.parsed("--memory", options.memory, parse_place, "host|node:N|gpu:N",
                  "Both sides' memory; without it, host memory");
  transfer.text("--peer", options.peer, "HOST:PORT",
                "An engine that listens, such as weft decode's; without it, a second engine in "
                "this process");
  transfer.parsed("--peer-memory", options.peer_memory, parse_place, "host|node:N|gpu:N",
                  "The peer's memory, where it differs");
  transfer.choice("--direction", options.direction, direction_names,
                  "read: out of the peer's memory; write: into it");
  transfer.choice("--priority", options.priority, priority_names,
                  "The transfer's class, which may have a policy of its own");
  transfer.parsed(
      "--policy", options.policy, parse_typed_policy, "POLICY",
      "Conditions for the path, or else the command fails and says why: terms with commas "
      "between them, of max-copies=0, forbid-cpu-copies, require-gpudirect, min-gbps=100, "
      "providers=efa+verbs");
  add_timeout(transfer, options.timeout);
  files.file("--svg", options.svg,
             "Draw the path too; -: to standard output, alone; needs Graphviz");
  add_engine(command, options.engine);
  add_console(command, options.console, false);
}

void add_options(CLI::App& command, KvOptions& options) {
  OptionGroup model(command, "Model"), cache(command, "Cache");
  constexpr std::uint32_t most_ranks = 1 << 12, most_tokens = 1 << 24;
  command
      .add_option("MODEL", options.model,
                  "A model's name, or the path of its config.json: " + known_models())
      ->required();
  model.choice("--dtype", options.layout.dtype, dtype_names, "Element type");
  model
      .number("--tokens", options.tokens, Multiples::binary, {1, most_tokens},
              "Tokens of the request whose bytes are told")
      ->default_str("4K");
  std::vector<std::string> servers;
  for (const kv::ServerLayout& each : kv::server_layouts()) servers.emplace_back(each.name);
  cache.words("--server", options.server, servers, "The layout of this serving engine");
  cache
      .number("--block-tokens", options.layout.tokens_per_block, Multiples::decimal, {1, 1 << 16},
              "Tokens of a block")
      ->default_str("16");
  const auto add_share = [&](const std::string& name, kv::Share& share, const std::string& what) {
    cache
        .number("--" + name + "-size", share.size, Multiples::decimal, {1, most_ranks},
                what + " of the side that is shown")
        ->default_str("1");
    cache
        .number("--" + name + "-rank", share.rank, Multiples::decimal, {0, most_ranks - 1},
                "The one of them that is shown")
        ->default_str("0");
  };
  add_share("tp", options.layout.parallel.tp, "Tensor-parallel ranks");
  add_share("pp", options.pp, "Pipeline stages");
  cache
      .number("--peer-tp-size", options.peer_tp, Multiples::decimal, {1, most_ranks},
              "Tensor-parallel ranks of the side that writes to it")
      ->default_str("1");
  cache
      .number("--peer-pp-size", options.peer_pp, Multiples::decimal, {1, most_ranks},
              "Pipeline stages of the side that writes to it")
      ->default_str("1");
  command.parse_complete_callback([&options] {
    if (options.pp.rank >= options.pp.size)
      throw CLI::ValidationError("--pp-rank", fmt::format("{} is no rank of --pp-size {}",
                                                          options.pp.rank, options.pp.size));
  });
  add_console(command, options.console, false);
}

void add_options(CLI::App& command, WeightsOptions& options) {
  OptionGroup positionals(command, "Positionals"), model(command, "Model"), nics(command, "NICs"),
      plan(command, "Plan");
  positionals.words("action", options.action, {"plan"}, "What to do")->required();
  CLI::Option* const files =
      command.add_option("FILE", options.files,
                         "Files with ranks and their shards, as JSON; several are taken together");
  CLI::Option* const config =
      model.file("--config", options.config,
                 "The model's config.json, dealt out to ranks as the next two options say");
  files->excludes(config);
  const char* const form = "tp=N,pp=N,ep=N,fsdp=N,dp=N,replicas=N";
  model
      .parsed("--trainers", options.trainers, weights::parse_parallelism, form,
              "How trainers share the model; what is left out is 1")
      ->needs(config);
  model
      .parsed("--ranks", options.ranks, weights::parse_parallelism, form,
              "How inference ranks share it")
      ->needs(config);
  constexpr std::uint32_t most_nics = 1024;
  model
      .number("--ranks-per-host", options.ranks_per_host, Multiples::decimal, {1, most_nics},
              "Ranks of one side on a host")
      ->default_str("8")
      ->needs(config);
  nics.number("--nics", options.nics, Multiples::decimal, {1, most_nics},
              "NICs of each rank, in place of what the files say; with --config else 4");
  CLI::Option* const gbps =
      nics.parsed("--gbps", options.gbps, parse_gbps, "N",
                  "Gb/s of each NIC, in place of what the files say; with --config else 100");
  nics.file("--result", options.result,
            "A result of weft-perf's: the greatest rate in it is what all NICs of a rank carry")
      ->excludes(gbps);
  plan.choice("--fan-out", options.plan.fan_out, fan_out_names,
              "Whether replicas pass weights on to each other");
  plan.number("--chunk-bytes", options.plan.chunk_bytes, Multiples::binary, {1, 1ULL << 40},
              "Bytes that a replica receives before it passes them on")
      ->default_str("256M");
  command.parse_complete_callback([&options] {
    if (options.files.empty() && options.config.empty())
      throw CLI::RequiredError("FILE or --config");
  });
  add_console(command, options.console, false);
}

}  // namespace weft::tool
