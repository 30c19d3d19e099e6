#include "command/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "common/memory_place.hpp"
#include "common/options.hpp"
#include "workload/file_memory.hpp"
#include "workload/grid.hpp"

namespace weft::perf {
namespace {

using tool::OptionGroup;

template <typename Number>
CLI::Option* add_grid(OptionGroup& group, const std::string& name, std::vector<Number>& numbers,
                      Multiples multiples, const std::string& text) {
  return group.parsed(
      name, numbers,
      [multiples](const std::string& given) -> Result<std::vector<Number>> {
        const auto parsed = parse_grid(given, multiples);
        if (!parsed) return fail(parsed.error());
        for (const std::uint64_t each : *parsed)
          if (each > std::numeric_limits<Number>::max())
            return fail(Code::invalid_argument, fmt::format("{} is too large", each));
        return std::vector<Number>(parsed->begin(), parsed->end());
      },
      "GRID", text);
}

/// Enumerators by the names that JSON has for them.
template <typename Enum>
CLI::Option* add_names(OptionGroup& group, const std::string& name, std::vector<Enum>& values,
                       const std::string& text) {
  return group.parsed_list(
      name, values,
      [](const std::string& word) -> Result<Enum> {
        const auto value = Json(word).get<Enum>();
        if (name_of(value) == word) return value;
        return fail(Code::invalid_argument, fmt::format("'{}' is none that is known", word));
      },
      "LIST", text);
}

Result<double> parse_percent(const std::string& text) {
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && percent >= 0 && percent <= 100) return percent / 100;
  return fail(Code::invalid_argument, fmt::format("'{}' is no number from 0 to 100", text));
}

void add_sides(CLI::App& app, Options& options) {
  OptionGroup group(app, "Sides (--listen, --peer or --local)");
  const auto listen = group.parsed(
      "--listen", options.site.listen,
      [&options](const std::string& address) -> Result<std::string> {
        options.listen = true;
        return address;
      },
      "HOST:PORT",
      "Be the target, or an initiator of --from, for one that measures after the other, until "
      "Ctrl-C. The engines of points listen at ports that the system chooses");
  add_advertise(group, options.site.advertise)->needs(listen);
  const auto peer = group.list("--peer", options.peers,
                               "Measure against the target there (HOST:PORT); several: each gets a "
                               "window of its own, from each initiator's one engine");
  const auto local =
      group.flag("--local", options.local,
                 "Measure against targets that this process starts; with --from, where the first "
                 "of those that are elsewhere reaches this machine");
  const auto from =
      group.list("--from", options.from,
                 "Initiators, instead of processes on this machine: each is the HOST:PORT of a "
                 "weft-perf --listen, or 'here' for one that this process starts. They must reach "
                 "the targets' ports. --initiators takes the first of them (all)");
  listen->excludes(peer, local, from);
  peer->excludes(local);
  group.flag("--once", options.once, "With --listen: end after one peer")->needs(listen);
  add_ready_fd(group, options.ready_fd)->needs(listen);
  group
      .list("--files", options.site.files,
            "With --listen: files that the one that measures may name as memory of this side. It "
            "overwrites them")
      ->needs(listen);
  add_unauthenticated(group, options.site.allow_unauthenticated_network);
  add_rail_address(group, options.site.rail_address);
  add_nics(group, options.site.nics);
  add_timeout(group, options.site.timeout);
}

void add_work(CLI::App& app, Grid& grid) {
  OptionGroup group(app, "Points: all combinations of");
  add_grid(group, "--initiators", grid.initiators, Multiples::decimal,
           "Sides that begin operations at once, each with a window of its own for every target; "
           "several are processes of their own, on this machine unless --from says where")
      ->default_str("1, or all of --from");
  add_grid(group, "--targets", grid.targets, Multiples::decimal,
           "Targets of each of them: with --local so many are started, else they are the first of "
           "--peer")
      ->default_str("1, or all of --peer");
  add_names(group, "--operation", grid.operations,
            "write, read, signal (a write that raises one), message (until its empty answer is "
            "here), mixed (half of the window writes, half reads)")
      ->default_str("write");
  add_grid(group, "--size", grid.sizes, Multiples::binary,
           "Bytes of an operation, in all its pieces together")
      ->default_str("64K");
  add_grid(group, "--pieces", grid.pieces, Multiples::decimal,
           "Pieces of an operation, as long as each other")
      ->default_str("1");
  add_names(group, "--pattern", grid.patterns, "How pieces lie: contiguous, strided, random")
      ->default_str("contiguous");
  add_grid(group, "--window", grid.windows, Multiples::decimal,
           "Operations in flight, each with memory of its own")
      ->default_str("4");
  add_grid(group, "--batch", grid.batches, Multiples::decimal,
           "Operations begun one after the other once there is room for all")
      ->default_str("1");
  add_grid(group, "--rate", grid.rates, Multiples::decimal,
           "Open-loop arrivals per second (Poisson), at all initiators together; latency counts "
           "from when an operation was due. 0: as fast as the window allows")
      ->default_str("0");
  group
      .list("--memory", grid.memories,
            fmt::format("Both sides' memory: {}, file:PATH[,direct|,buffered] (made if there is "
                        "none; its first bytes are overwritten)",
                        tool::kinds_of_memory))
      ->default_str("host");
  group.list("--peer-memory", grid.peer_memories, "The peer's memory, where it differs");
  add_names(group, "--priority", grid.priorities, "Class of each transfer: normal, latency, bulk")
      ->default_str("normal");
  group.flag("--one-buffer", grid.one_buffer,
             "All operations in flight use the same memory on both sides, which stays in the "
             "CPU's caches for longer than one each; --verify compares it once");
}

void add_kv(CLI::App& app, Grid& grid) {
  OptionGroup group(app, "KV caches, instead of pieces of one size: all combinations of");
  const auto model =
      group
          .list("--model", grid.models,
                "An operation is one request's blocks, of these models: " + tool::known_models())
          ->check(tool::known_model());
  std::vector<CLI::Option*> options = {
      group.list("--dtype", grid.dtypes, "Element type: bf16, fp8")->default_str("bf16"),
      add_grid(group, "--tokens", grid.tokens, Multiples::binary, "Tokens of each request")
          ->default_str("4K"),
      add_grid(group, "--layer-groups", grid.layer_groups, Multiples::decimal,
               "Transfers that a request is cut into")
          ->default_str("8"),
      add_grid(group, "--block-tokens", grid.block_tokens, Multiples::decimal, "Tokens of a block")
          ->default_str("16"),
      add_grid(group, "--block-bytes", grid.block_bytes, Multiples::binary,
               "Instead: so many tokens that what a layer keeps of a block in one piece has as "
               "many bytes, or as few less as can be"),
      add_grid(group, "--tp-size", grid.tp, Multiples::decimal,
               "Tensor-parallel ranks of the side that has the cache; its rank 0 is measured")
          ->default_str("1"),
      add_grid(group, "--peer-tp-size", grid.peer_tp, Multiples::decimal,
               "Tensor-parallel ranks of the side that gets it; its rank 0 is measured")
          ->default_str("1"),
      add_grid(group, "--pp-size", grid.pp, Multiples::decimal,
               "Pipeline stages of the side that has the cache; the first is measured")
          ->default_str("1"),
      add_grid(group, "--peer-pp-size", grid.peer_pp, Multiples::decimal,
               "Pipeline stages of the side that gets it; the first is measured")
          ->default_str("1")};
  for (CLI::Option* each : options) each->needs(model);
  app.get_option("--block-bytes")->excludes(app.get_option("--block-tokens"));
  for (const char* name : {"--size", "--pieces", "--pattern"})
    model->excludes(app.get_option(name));
}

void add_engines(CLI::App& app, Grid& grid) {
  OptionGroup group(app, "Engines, for both sides: all combinations of");
  group
      .list("--providers", grid.providers,
            fmt::format("auto, {}; each is measured by itself", tool::provider_names()))
      ->default_str("auto");
  add_grid(group, "--rails", grid.rails, Multiples::decimal, "Rails for each NIC; 0: automatic")
      ->default_str("0");
  add_grid(group, "--max-nics", grid.nics, Multiples::decimal, "NICs, at most")->default_str("4");
  add_grid(group, "--threads", grid.threads, Multiples::decimal, "Progress threads; 0: automatic")
      ->default_str("0");
  add_grid(group, "--chunk", grid.chunks, Multiples::binary,
           "Largest operation of a rail, in bytes; 0: automatic")
      ->default_str("0");
  add_grid(group, "--rail-window", grid.rail_windows, Multiples::decimal,
           "Operations in flight on a rail; 0: automatic")
      ->default_str("0");
  add_grid(group, "--bounce-bytes", grid.bounce_bytes, Multiples::binary,
           "Size of a bounce buffer; 0: automatic")
      ->default_str("0");
  add_grid(group, "--bounce-buffers", grid.bounce_buffers, Multiples::decimal,
           "Bounce buffers per peer and rail; 0: automatic")
      ->default_str("0");
  add_names(group, "--gpu-path", grid.gpu_paths,
            "Between GPUs of one host: lent (one of them copies straight, where it can), staged "
            "(as between hosts)")
      ->default_str("lent");
  add_names(group, "--engine-progress", grid.progress,
            "Progress of this side: threads, manual (the waiting thread polls)")
      ->default_str("threads");
}

void add_measuring(CLI::App& app, Options& options) {
  OptionGroup group(app, "Measuring");
  SweepOptions& sweep = options.sweep;
  group.seconds("--time", sweep.run.length.time, 0.001, "Length of one run")->default_str("1");
  group.number("--count", sweep.run.length.operations, Multiples::decimal, {},
               "Operations of one run, of all initiators together, if they come before its time is "
               "over. Baselines take all of its time");
  group.seconds("--warm-up", sweep.run.warm_up, 0, "Before each run")->default_str("0.2");
  group
      .number("--repeats", sweep.repeats, Multiples::decimal, {1, 1000},
              "Runs of each point; all points are run once before any is run again")
      ->default_str("8");
  group.flag("--verify", sweep.run.verify,
             "After each run compare every byte that was moved, and those around it, with a "
             "pattern that depends on each position");
  group.parsed_list(
      "--baseline", sweep.baselines, [](const std::string& name) { return parse_baseline(name); },
      "LIST",
      "Measure before each run: contiguous (by the same engines, each operation's bytes in one "
      "piece), wire (by the same engines, between host memory), raw (a plain libfabric loop to the "
      "first target, between host memory, with an "
      "endpoint for each initiator), raw:N (N endpoints for each), memcpy, memcpy:N (N threads for "
      "each), socket (a plain TCP stream: for one initiator and target), disk (the point's file "
      "alone, by Weft), fio (likewise, by fio). With --from elsewhere: contiguous and wire only");
}

void add_output(CLI::App& app, Options& options) {
  OptionGroup group(app, "Output");
  group.flag("--wide", options.wide, "Show all columns of the table, however long its lines get");
  group.file("--json", options.json,
             "Write all results there; -: to standard output, alone. weft-perf-report makes CSV, "
             "pictures and HTML of them");
  const auto compared =
      group.file("--compare", options.compare,
                 "Say what differs from the results in this file (--json) beyond noise; exit code "
                 "3 if anything got worse. It needs more repeats the more points there are: 6 for "
                 "one, 8 for twenty");
  group
      .parsed("--threshold", options.threshold, parse_percent, "PERCENT",
              "With --compare: smaller changes do not count")
      ->default_str("3")
      ->needs(compared);
  add_progress(group, options.progress);
}

/// Options that a target does not take. As exclusions they would fill the help.
void check_left_to_the_measurer(const CLI::App& app) {
  const std::string sides = app.get_option("--listen")->get_group();
  const std::string credentials = app.get_option("--secret-file")->get_group();
  for (const CLI::Option* each : app.get_options())
    if (each->count() > 0 && each->get_group() != sides && each->get_group() != credentials)
      throw CLI::ValidationError(each->get_name(),
                                 "is for the side that measures, and not beside --listen");
}

/// What this side lends to itself, and to those that it starts. On one machine the two sides need
/// files of their own.
std::vector<std::string> named_files(const Options& options) {
  const Grid& grid = options.grid;
  for (const std::string& each : grid.memories)
    if (const auto checked = check_memory(each); !checked)
      throw CLI::ValidationError("--memory", checked.error().message());
  std::vector<std::string> own = paths_of(grid.memories);
  const auto theirs = grid.peer_memories.empty() ? own : paths_of(grid.peer_memories);
  for (const std::string& path : theirs) {
    const bool both = std::find(own.begin(), own.end(), path) != own.end();
    if (both && options.local)
      throw CLI::ValidationError("--memory", "both sides would overwrite the file '" + path +
                                                 "': give --peer-memory as well");
    if (!both) own.push_back(path);
  }
  return own;
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  add_sides(app, options);
  add_work(app, options.grid);
  add_kv(app, options.grid);
  add_engines(app, options.grid);
  add_measuring(app, options);
  add_output(app, options);
  tool::add_credentials(app, options.site.credentials);
  app.parse_complete_callback([&] {
    if (options.listen) return check_left_to_the_measurer(app);
    join_files(options.grid.memories);
    join_files(options.grid.peer_memories);
    options.site.files = named_files(options);
    if (!options.from.empty() && app.count("--initiators") == 0)
      options.grid.initiators = {static_cast<std::uint32_t>(options.from.size())};
    if (!options.peers.empty() && app.count("--targets") == 0)
      options.grid.targets = {static_cast<std::uint32_t>(options.peers.size())};
  });
}

void add_options(CLI::App& app, PlanOptions& options) {
  KvShape& kv = options.kv;
  kv.layer_groups = usual_layer_groups;
  OptionGroup group(app, "Request"), output(app, "Output");
  group.text("--model", kv.model, "NAME", "One of " + tool::known_models())
      ->check(tool::known_model())
      ->required();
  group.number("--tokens", kv.tokens, Multiples::binary, {}, "Tokens of the request")->required();
  group.parsed(
      "--prefill-seconds", options.prefill_seconds,
      [](const std::string& text) -> Result<double> {
        return tool::parse_seconds(text, 0.000001).map([](Nanoseconds time) {
          return std::chrono::duration<double>(time).count();
        });
      },
      "SECONDS", "TTFT without the transfer; without it, the share of the TTFT is not told");
  group.text("--dtype", kv.dtype, "bf16|fp8", "Element type")->default_str("bf16");
  group.number("--block-tokens", kv.block_tokens, Multiples::decimal, {}, "Tokens of a block")
      ->default_str("16");
  group
      .number("--layer-groups", kv.layer_groups, Multiples::decimal, {},
              "Transfers that the request is cut into")
      ->default_str("8");
  group
      .number("--tp-size", kv.tp, Multiples::decimal, {},
              "Tensor-parallel ranks of the prefill side")
      ->default_str("1");
  group
      .number("--peer-tp-size", kv.peer_tp, Multiples::decimal, {},
              "Tensor-parallel ranks of the decode side")
      ->default_str("1");
  group.number("--pp-size", kv.pp, Multiples::decimal, {}, "Pipeline stages of the prefill side")
      ->default_str("1");
  group
      .number("--peer-pp-size", kv.peer_pp, Multiples::decimal, {},
              "Pipeline stages of the decode side")
      ->default_str("1");
  group.file("--fabric", options.fabric, "Results of the fabric (weft-perf --json)")->required();
  output.flag("--json", options.json, "Print one JSON document instead of text");
}

std::string command_line(int count, const char* const* words) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,.:/@%^";
  std::string line = "weft-perf";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    line += " ";
    if (!word.empty() && word.find_first_not_of(plain) == word.npos) {
      line += word;
      continue;
    }
    line += "'";
    for (const char each : word) line += each == '\'' ? std::string("'\\''") : std::string(1, each);
    line += "'";
  }
  return line;
}

Json settings_json(const Options& options) {
  const RunOptions& run = options.sweep.run;
  const auto seconds = [](Nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  Json json{{"local", options.local},
            {"repeats", options.sweep.repeats},
            {"seconds", seconds(run.length.time)},
            {"count", run.length.operations},
            {"warm_up_seconds", seconds(run.warm_up)},
            {"verify", run.verify},
            {"baselines", Json::array()}};
  if (!options.peers.empty()) json["peers"] = options.peers;
  if (!options.from.empty()) json["from"] = options.from;
  if (!options.site.nics.empty()) json["nics"] = options.site.nics;
  if (!options.site.rail_address.empty()) json["rail_address"] = options.site.rail_address;
  json["timeout_seconds"] = seconds(options.site.timeout);
  for (const Baseline& baseline : options.sweep.baselines)
    json["baselines"].push_back(baseline.name());
  return json;
}

}  // namespace weft::perf
