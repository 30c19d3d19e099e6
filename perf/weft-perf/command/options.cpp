#include "command/options.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "workload/grid.hpp"

namespace weft::perf {
namespace {

constexpr double longest_time = std::chrono::duration<double>(longest_run).count();

template <typename Number>
void add_grid(CLI::App& app, const char* group, const std::string& name,
              std::vector<Number>& numbers, Multiples multiples, const std::string& text) {
  app.add_option_function<std::string>(
         name,
         [&numbers, multiples, name](const std::string& given) {
           const auto parsed = parse_grid(given, multiples);
           if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
           for (const std::uint64_t each : *parsed)
             if (each > std::numeric_limits<Number>::max())
               throw CLI::ValidationError(name, fmt::format("{} is too large", each));
           numbers.assign(parsed->begin(), parsed->end());
         },
         text)
      ->type_name("GRID")
      ->group(group);
}

CLI::Option* add_number(CLI::App& app, const char* group, const std::string& name,
                        std::uint64_t& number, Multiples multiples, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&number, multiples, name](const std::string& given) {
            const auto parsed = parse_number(given, multiples);
            if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
            number = *parsed;
          },
          text)
      ->type_name("N")
      ->group(group);
}

/// Enumerators by the names that JSON has for them.
template <typename Enum>
void add_names(CLI::App& app, const char* group, const std::string& name, std::vector<Enum>& values,
               const std::string& text) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&values, name](const std::vector<std::string>& given) {
           values.clear();
           for (const std::string& word : given) {
             const auto value = Json(word).get<Enum>();
             if (name_of(value) != word)
               throw CLI::ValidationError(name, fmt::format("'{}' is none that is known", word));
             values.push_back(value);
           }
         },
         text)
      ->delimiter(',')
      ->type_name("LIST")
      ->group(group);
}

void add_words(CLI::App& app, const char* group, const std::string& name,
               std::vector<std::string>& words, const std::string& text) {
  app.add_option(name, words, text)->delimiter(',')->type_name("LIST")->group(group);
}

/// CLI::Range would take NaN, which is neither less nor greater than anything.
CLI::Validator between(double least, double greatest) {
  return CLI::Validator(
      [=](const std::string& given) -> std::string {
        const double value = std::strtod(given.c_str(), nullptr);
        if (value >= least && value <= greatest) return {};
        return fmt::format("Value {} not in range {} to {}", given, least, greatest);
      },
      "");
}

void add_seconds(CLI::App& app, const char* group, const std::string& name, Nanoseconds& time,
                 double least, const std::string& text) {
  app.add_option_function<double>(
         name,
         [&time](double seconds) {
           time = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
         },
         text)
      ->type_name("SECONDS")
      ->check(between(least, longest_time))
      ->group(group);
}

void add_sides(CLI::App& app, Options& options) {
  const char* group = "Sides (--listen, --peer or --local)";
  const auto listen = app.add_option_function<std::string>(
                             "--listen",
                             [&options](const std::string& address) {
                               options.listen = true;
                               options.site.listen = address;
                             },
                             "Be the target, or an initiator of --from, for one that "
                             "measures after the other, until Ctrl-C. The engines of points listen "
                             "at ports that the system chooses")
                          ->type_name("HOST:PORT")
                          ->group(group);
  app.add_option("--advertise", options.site.advertise,
                 "With --listen: the address that peers use, where it is another, such as with "
                 "0.0.0.0. Rails are there too, unless --rail-address says where")
      ->type_name("HOST[:PORT]")
      ->needs(listen)
      ->group(group);
  const auto peer = app.add_option("--peer", options.peers,
                                   "Measure against the target there; several: each gets a window "
                                   "of its own, from each initiator's one engine")
                        ->type_name("HOST:PORT,...")
                        ->delimiter(',')
                        ->group(group);
  const auto local =
      app.add_flag("--local", options.local,
                   "Measure against targets that this process starts; with --from, where the "
                   "first of those that are elsewhere reaches this machine")
          ->group(group);
  const auto from =
      app.add_option("--from", options.from,
                     "Initiators, instead of processes on this machine: each is a weft-perf "
                     "--listen, or 'here' for one that this process starts. They must reach the "
                     "targets' ports. --initiators takes the first of them (all)")
          ->type_name("HOST:PORT|here,...")
          ->delimiter(',')
          ->group(group);
  listen->excludes(peer, local, from);
  peer->excludes(local);
  app.add_flag("--once", options.once, "With --listen: end after one peer")
      ->needs(listen)
      ->group(group);
  app.add_option("--ready-fd", options.ready_fd,
                 "With --listen: write the address and a newline to this open descriptor")
      ->type_name("FD")
      ->needs(listen)
      ->check(CLI::NonNegativeNumber.description(""))
      ->group(group);
  app.add_flag("--allow-unauthenticated-network", options.site.allow_unauthenticated_network,
               "Listen beyond loopback although anyone who reaches the port may write to the "
               "memory")
      ->group(group);
  app.add_option("--rail-address", options.site.rail_address,
                 "Local IP address whose interface carries the tcp rails")
      ->type_name("IP")
      ->group(group);
  add_words(app, group, "--nic", options.site.nics,
            "NICs of this side, by name or pattern, best first; ^NAME forbids one");
  add_seconds(app, group, "--timeout", options.site.timeout, 0.1,
              "Longest wait for any one step (60)");
}

void add_work(CLI::App& app, Grid& grid) {
  const char* group = "Points: all combinations of";
  add_grid(
      app, group, "--initiators", grid.initiators, Multiples::decimal,
      "Sides that begin operations at once, each with a window of its own for every target; "
      "several are processes of their own, on this machine unless --from says where (1, or all of "
      "--from)");
  add_grid(app, group, "--targets", grid.targets, Multiples::decimal,
           "Targets of each of them: with --local so many are started, else they are the first of "
           "--peer (1, or all of --peer)");
  add_names(app, group, "--operation", grid.operations,
            "write (the default), read, signal (a write that raises one), message (until its empty "
            "answer is here), mixed (half of the window writes, half reads)");
  add_grid(app, group, "--size", grid.sizes, Multiples::binary,
           "Bytes of an operation, in all its pieces together (64K)");
  add_grid(app, group, "--pieces", grid.pieces, Multiples::decimal,
           "Pieces of an operation, as long as each other (1)");
  add_names(app, group, "--pattern", grid.patterns,
            "How pieces lie: contiguous (the default), strided, random");
  add_grid(app, group, "--window", grid.windows, Multiples::decimal,
           "Operations in flight, each with memory of its own (4)");
  add_grid(app, group, "--batch", grid.batches, Multiples::decimal,
           "Operations begun one after the other once there is room for all (1)");
  add_grid(
      app, group, "--rate", grid.rates, Multiples::decimal,
      "Open-loop arrivals per second (Poisson), at all initiators together; latency counts from "
      "when an operation was due. 0: as fast as the window allows (0)");
  add_words(app, group, "--memory", grid.memories,
            "Both sides': host (the default: pages of their own), shared (a file in memory, which "
            "peers of one host map), node:N, gpu:N (as CUDA counts; its nearest NICs are opened)");
  add_words(app, group, "--peer-memory", grid.peer_memories, "The target's, where it differs");
  add_names(app, group, "--priority", grid.priorities,
            "Class of each transfer: normal (the default), latency, bulk");
  app.add_flag("--one-buffer", grid.one_buffer,
               "All operations in flight use the same memory on both sides, which stays in the "
               "CPU's caches for longer than one each; --verify compares it once")
      ->group(group);
}

void add_kv(CLI::App& app, Grid& grid) {
  const char* group = "KV caches, instead of pieces of one size: all combinations of";
  add_words(app, group, "--model", grid.models,
            "An operation is one request's blocks, of a model such as Llama-3.1-8B");
  add_words(app, group, "--dtype", grid.dtypes, "bf16 (the default), fp8");
  add_grid(app, group, "--tokens", grid.tokens, Multiples::binary, "Of a request (4K)");
  add_grid(app, group, "--layer-groups", grid.layer_groups, Multiples::decimal,
           "Transfers that a request is cut into (8)");
  add_grid(app, group, "--block-tokens", grid.block_tokens, Multiples::decimal,
           "Tokens of a block (16)");
  add_grid(app, group, "--block-bytes", grid.block_bytes, Multiples::binary,
           "Instead: so many tokens that what a layer keeps of a block in one piece has as many "
           "bytes, or as few less as can be");
  add_grid(app, group, "--tp", grid.tp, Multiples::decimal,
           "Tensor-parallel ranks of the side that has the cache; its rank 0 is measured (1)");
  add_grid(app, group, "--peer-tp", grid.peer_tp, Multiples::decimal,
           "Of the side that gets it, likewise (1)");
  app.get_option("--block-bytes")->excludes(app.get_option("--block-tokens"));
  for (const char* name : {"--dtype", "--tokens", "--layer-groups", "--block-tokens",
                           "--block-bytes", "--tp", "--peer-tp"})
    app.get_option(name)->needs(app.get_option("--model"));
  for (const char* name : {"--size", "--pieces", "--pattern"})
    app.get_option("--model")->excludes(app.get_option(name));
}

void add_fabric(CLI::App& app, Grid& grid) {
  const char* group = "Engines, for both sides: all combinations of";
  add_words(app, group, "--provider", grid.providers,
            "auto (the default), shm, efa, verbs, tcp, or libfabric's own names");
  add_grid(app, group, "--rails", grid.rails, Multiples::decimal, "For each NIC; 0: automatic (0)");
  add_grid(app, group, "--nics", grid.nics, Multiples::decimal, "NICs, at most (4)");
  add_grid(app, group, "--threads", grid.threads, Multiples::decimal,
           "Progress threads; 0: automatic (0)");
  add_grid(app, group, "--chunk", grid.chunks, Multiples::binary,
           "Largest operation of a rail, in bytes; 0: automatic (0)");
  add_grid(app, group, "--rail-window", grid.rail_windows, Multiples::decimal,
           "Operations in flight on a rail; 0: automatic (0)");
  add_grid(app, group, "--bounce-bytes", grid.bounce_bytes, Multiples::binary,
           "Size of a bounce buffer; 0: automatic (0)");
  add_grid(app, group, "--bounce-buffers", grid.bounce_buffers, Multiples::decimal,
           "Bounce buffers per peer and rail; 0: automatic (0)");
  add_names(app, group, "--gpu-path", grid.gpu_paths,
            "Between GPUs of one host: lent (the default: one of them copies straight, where it "
            "can), staged (as between hosts)");
  add_names(app, group, "--engine-progress", grid.progress,
            "Progress of this side: threads (the default), manual (the waiting thread polls)");
}

void add_measuring(CLI::App& app, Options& options) {
  const char* group = "Measuring";
  SweepOptions& sweep = options.sweep;
  add_seconds(app, group, "--time", sweep.run.length.time, 0.001, "Of one run (1)");
  add_number(app, group, "--count", sweep.run.length.operations, Multiples::decimal,
             "Operations of one run, of all initiators together, if they come before its time is "
             "over. Baselines take all of its time");
  add_seconds(app, group, "--warm-up", sweep.run.warm_up, 0, "Before each run (0.2)");
  app.add_option("--repeats", sweep.repeats,
                 "Runs of each point; all points are run once before any is run again (8)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1000U).description(""))
      ->group(group);
  app.add_flag("--verify", sweep.run.verify,
               "After each run compare every byte that was moved, and those around it, with a "
               "pattern that depends on each position")
      ->group(group);
  app.add_option_function<std::vector<std::string>>(
         "--baseline",
         [&sweep](const std::vector<std::string>& names) {
           for (const std::string& name : names) {
             auto baseline = parse_baseline(name);
             if (!baseline) throw CLI::ValidationError("--baseline", baseline.error().message());
             sweep.baselines.push_back(*baseline);
           }
         },
         "Measure before each run: contiguous (by the same engines, each operation's bytes in one "
         "piece), raw (a plain libfabric loop to the first target, between host memory, "
         "with an endpoint for each initiator), raw:N (N endpoints for each), memcpy, memcpy:N (N "
         "threads for each), socket "
         "(a plain TCP stream: for one initiator and target). With --from elsewhere: contiguous "
         "only")
      ->delimiter(',')
      ->type_name("LIST")
      ->group(group);
}

void add_output(CLI::App& app, Options& options) {
  const char* group = "Output";
  app.add_flag("--wide", options.wide, "Show all columns of the table, however long its lines get")
      ->group(group);
  app.add_option("--json", options.json, "Write all results there; -: to standard output, alone")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--csv", options.csv,
                 "Write a line for each point there; -: to standard output, alone")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--plot", options.plot,
                 "Draw bandwidth and latency against size there, in the format that the name says; "
                 "needs gnuplot")
      ->type_name("FILE.svg|FILE.png")
      ->group(group);
  app.add_option("--html", options.html, "Write a report there that is one file; needs gnuplot")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--compare", options.compare,
                 "Say what differs from the results in this file (--json) beyond noise; exit code "
                 "3 if anything got worse. It needs more repeats the more points there are: 6 for "
                 "one, 8 for twenty")
      ->type_name("FILE")
      ->group(group);
  app.add_option_function<double>(
         "--threshold", [&options](double percent) { options.threshold = percent / 100; },
         "With --compare: smaller changes do not count (3)")
      ->needs(app.get_option("--compare"))
      ->type_name("PERCENT")
      ->check(between(0, 100))
      ->group(group);
  app.add_option("--progress", options.progress, "A line on standard error: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->group(group);
}

/// What a target does not decide. As exclusions they would fill the help.
void check_left_to_the_measurer(const CLI::App& app) {
  const std::string sides = app.get_option("--listen")->get_group();
  const std::string credentials = app.get_option("--secret-file")->get_group();
  for (const CLI::Option* each : app.get_options())
    if (each->count() > 0 && each->get_group() != sides && each->get_group() != credentials)
      throw CLI::ValidationError(each->get_name(),
                                 "is for the side that measures, and not beside --listen");
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  add_sides(app, options);
  add_work(app, options.grid);
  add_kv(app, options.grid);
  add_fabric(app, options.grid);
  add_measuring(app, options);
  add_output(app, options);
  tool::add_credentials(app, options.site.credentials);
  app.parse_complete_callback([&] {
    if (options.listen) check_left_to_the_measurer(app);
    if (!options.from.empty() && app.count("--initiators") == 0)
      options.grid.initiators = {static_cast<std::uint32_t>(options.from.size())};
    if (!options.peers.empty() && app.count("--targets") == 0)
      options.grid.targets = {static_cast<std::uint32_t>(options.peers.size())};
  });
}

void add_options(CLI::App& app, PlanOptions& options) {
  KvShape& kv = options.kv;
  kv.layer_groups = usual_layer_groups;
  const char* group = "Request";
  app.add_option("--model", kv.model, "A name such as Llama-3.1-8B")
      ->type_name("NAME")
      ->required()
      ->group(group);
  add_number(app, group, "--tokens", kv.tokens, Multiples::binary, "Of its prompt: 4096, 32K")
      ->required();
  app.add_option("--prefill-seconds", options.prefill_seconds,
                 "TTFT without the transfer; without it, the share of the TTFT is not told")
      ->type_name("SECONDS")
      ->check(between(0.000001, longest_time))
      ->group(group);
  app.add_option("--dtype", kv.dtype, "bf16 (the default), fp8")->type_name("NAME")->group(group);
  app.add_option("--block-tokens", kv.block_tokens, "Tokens of a block (16)")
      ->type_name("N")
      ->group(group);
  app.add_option("--layer-groups", kv.layer_groups, "Transfers that it is cut into (8)")
      ->type_name("N")
      ->group(group);
  app.add_option("--tp", kv.tp, "Tensor-parallel ranks of the prefill side (1)")
      ->type_name("N")
      ->group(group);
  app.add_option("--peer-tp", kv.peer_tp, "Of the decode side (1)")->type_name("N")->group(group);
  app.add_option("--fabric", options.fabric, "What was measured (weft-perf --json)")
      ->type_name("FILE")
      ->required()
      ->group(group);
  app.add_flag("--json", options.json, "Print JSON instead of a table")->group("Output");
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
