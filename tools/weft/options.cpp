#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>

#include "demo/protocol.hpp"

namespace weft::tool {
namespace {

constexpr double longest_timeout = 24 * 60 * 60;

CLI::Validator known_model() {
  return CLI::Validator(
      [](std::string& name) {
        const auto model = kv::find_model(name);
        return model ? std::string() : model.error().message();
      },
      "NAME");
}

template <typename Enum>
std::string listed(const Names<Enum>& names, std::string_view separator) {
  std::vector<std::string> known;
  for (const auto& [each, value] : names) known.push_back(each);
  return fmt::format("{}", fmt::join(known, separator));
}

/// Replaces a name by its enumerator's number, which is what CLI11 reads enumerators from.
template <typename Enum>
CLI::Validator named(const Names<Enum>& names) {
  return CLI::Validator(
      [names](std::string& text) {
        const auto found = names.find(text);
        if (found == names.end())
          return fmt::format("'{}' is none of {}", text, listed(names, ", "));
        text = std::to_string(static_cast<int>(found->second));
        return std::string();
      },
      "");
}

/// It becomes part of a file's name.
CLI::Validator backend_of_others() {
  return CLI::Validator(
      [](std::string& name) {
        const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char each) {
          return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_';
        });
        if (!word) return fmt::format("'{}' is no backend's name", name);
        return std::string(name == "WEFT" ? "WEFT has this name without --as" : "");
      },
      "");
}

template <typename Target, typename Enum>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Target& target,
                        const Names<Enum>& names, const std::string& text) {
  return command.add_option(name, target, text)
      ->transform(named(names))
      ->type_name(listed(names, "|"));
}

void add_console(CLI::App& command, ConsoleOptions& options, bool progress) {
  const std::string group = "Output";
  command.add_flag("--json", options.json, "Print one JSON document instead of text; errors too")
      ->group(group);
  command
      .add_flag("--quiet", options.quiet,
                "With --json: no sentence on standard error, where it is in the document anyway")
      ->group(group);
  if (progress)
    command
        .add_option("--progress", options.progress,
                    "Progress bar on standard error: auto shows it on a terminal")
        ->type_name("auto|always|never")
        ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
        ->capture_default_str()
        ->group(group);
}

void add_fabric(CLI::App& command, FabricOptions& options) {
  const std::string group = "Fabric";
  command
      .add_option(
          "--providers", options.providers,
          "Providers to use, best first: shm,efa,verbs,tcp,fi_shm, or libfabric's name for a "
          "way to have one, e.g. efa-direct; ^NAME forbids one")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--nics", options.nics,
                  "NICs to use, best first, by name or pattern; ^NAME forbids one")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  command.add_option("--rails", options.rails, "Rails per NIC; 0: as measured best")
      ->type_name("N")
      ->check(CLI::Range(0U, 64U).description(""))
      ->group(group);
  command.add_option("--threads", options.threads, "Progress threads; 0: one per rail")
      ->type_name("N")
      ->check(CLI::Range(0U, 64U).description(""))
      ->group(group);
  command
      .add_option("--chunk", options.chunk_bytes,
                  "Most bytes in one operation; 0: the rail's own best")
      ->type_name("BYTES")
      ->group(group);
  command.add_option("--window", options.window, "Operations in flight per rail; 0: its own best")
      ->type_name("N")
      ->group(group);
  add_choice(command, "--transport", options.transport, transport_names,
             "One-sided writes, or messages through bounce buffers")
      ->group(group);
  command
      .add_option("--rail-address", options.rail_address,
                  "Local IP address whose interface carries the tcp rails; without it, the one "
                  "that leads to the other side")
      ->type_name("IP")
      ->group(group);
  add_credentials(command, options.credentials);
}

/// An option whose text `parse` turns into the target, or complains about.
template <typename Target, typename Parse>
CLI::Option* add_parsed(CLI::App& command, const std::string& name, Target& target, Parse parse,
                        const std::string& text) {
  return command.add_option_function<std::string>(
      name,
      [&target, parse, name](const std::string& given) {
        auto parsed = parse(given);
        if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
        target = std::move(*parsed);
      },
      text);
}

void add_model(CLI::App& command, CacheOptions& options, bool required) {
  const std::string group = "Model";
  const std::string otherwise = required ? "" : "; without it, whatever prefill has";
  command
      .add_option("--model", options.model,
                  "Whose KV shape: a name such as Llama-3.1-8B, or an id on the Hugging Face hub" +
                      otherwise)
      ->type_name("NAME")
      ->check(known_model().description(""))
      ->required(required)
      ->group(group);
  add_choice(command, "--dtype", options.dtype, dtype_names,
             "Element type" + (required ? std::string("; without it, bf16") : otherwise))
      ->group(group);
}

void add_tensor_parallel(CLI::App& command, kv::TensorParallel& tp) {
  const std::string group = "Cache";
  command.add_option("--tp-size", tp.size, "Tensor-parallel ranks on this side")
      ->type_name("N")
      ->check(CLI::Range(1U, 8U).description(""))
      ->capture_default_str()
      ->group(group);
  command.add_option("--tp-rank", tp.rank, "Which of them this process is")
      ->type_name("N")
      ->check(CLI::Range(0U, 7U).description(""))
      ->capture_default_str()
      ->group(group);
}

/// `Number` and `Choices` may be optional. `prefix` and `whose` tell decode's options from
/// prefill's.
template <typename Number, typename Order, typename Parts, typename HeadOrder>
void add_layout(CLI::App& command, const std::string& prefix, const std::string& whose,
                Number& block_tokens, Number& blocks, Order& order, Parts& parts,
                HeadOrder& head_order) {
  const std::string group = "Cache";
  command
      .add_option("--" + prefix + "block-tokens", block_tokens,
                  "Tokens per block (vLLM's block_size, SGLang's page_size)" + whose)
      ->type_name("N")
      ->check(CLI::Range(1U, max_tokens_per_block).description(""))
      ->group(group);
  command
      .add_option(
          "--" + prefix + "blocks", blocks,
          "Blocks in the cache; 0: enough for the requests in flight and some to spare" + whose)
      ->type_name("N")
      ->group(group);
  add_choice(command, "--" + prefix + "order", order, order_names,
             "Which index varies slower" + whose)
      ->group(group);
  add_choice(command, "--" + prefix + "parts", parts, parts_names,
             "Keys and values apart, or side by side in each block" + whose)
      ->group(group);
  add_choice(command, "--" + prefix + "head-order", head_order, head_order_names,
             "In a page: tokens before heads, or heads before tokens" + whose)
      ->group(group);
}

void add_layout(CLI::App& command, CacheOptions& options) {
  kv::LayoutOptions& layout = options.layout;
  add_layout(command, "", "", layout.tokens_per_block, layout.blocks, layout.order, layout.parts,
             layout.head_order);
  command.add_option("--seed", options.seed, "Of the block tables' order and of the contents")
      ->type_name("N")
      ->capture_default_str()
      ->group("Cache");
}

void add_work(CLI::App& command, WorkOptions& options) {
  const std::string group = "Work";
  command.add_option("--tokens", options.tokens, "Tokens of each request")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, max_tokens).description(""))
      ->capture_default_str()
      ->group(group);
  command.add_option("--requests", options.requests, "Requests to hand over")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, max_requests).description(""))
      ->capture_default_str()
      ->group(group);
  command.add_option("--concurrency", options.concurrency, "Requests in flight at a time")
      ->type_name("N")
      ->check(CLI::Range(1U, max_concurrency).description(""))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--layer-groups", options.layer_groups,
                  "Parts in which a request's layers go, each with a signal of its own")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U).description(""))
      ->capture_default_str()
      ->group(group);
}

void add_explain(CLI::App& command, bool& explain) {
  command
      .add_flag("--explain", explain,
                "Also show the path that was declared before the first transfer beside what the "
                "transfers' ledgers say, and where the two differ")
      ->group("Output");
}

void add_metrics(CLI::App& command, std::string& address) {
  command
      .add_option(
          "--metrics", address,
          "Hand out metrics over HTTP at this local address, as /metrics for Prometheus and "
          "/snapshot in JSON; port 0: the system chooses, and standard error tells")
      ->type_name("HOST:PORT|unix:PATH")
      ->group("Address");
}

void add_timeout(CLI::App& command, double& timeout) {
  command.add_option("--timeout", timeout, "Longest wait for any one step, in seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, longest_timeout).description(""))
      ->capture_default_str()
      ->group("Work");
}

}  // namespace

CacheShape CacheOptions::shape(const kv::Model& of, kv::DType elements, std::uint64_t tokens,
                               std::uint32_t concurrency) const {
  CacheShape shape{of, layout};
  shape.options.dtype = elements;
  if (shape.options.blocks == 0) {
    const std::uint32_t needed = shape.blocks_for(tokens) * concurrency;
    // The spare ones lie between the others, and nobody may write to them.
    shape.options.blocks = needed + needed / 16 + 2;
  }
  return shape;
}

kv::LayoutOptions DemoOptions::decode_layout() const {
  kv::LayoutOptions layout = cache.layout;
  layout.tokens_per_block = decode_block_tokens.value_or(layout.tokens_per_block);
  layout.blocks = decode_blocks.value_or(0);
  layout.order = decode_order.value_or(layout.order);
  layout.parts = decode_parts.value_or(layout.parts);
  layout.head_order = decode_head_order.value_or(layout.head_order);
  return layout;
}

void add_options(CLI::App& command, InfoOptions& options) {
  add_console(command, options.console, false);
  add_fabric(command, options.fabric);
}

void add_options(CLI::App& command, TopoOptions& options) {
  const std::string machine = "Machine", files = "Files";
  const auto add_file = [&](const char* name, std::string& file, const char* text) {
    return command.add_option(name, file, text)->type_name("FILE");
  };
  CLI::Option* xml = add_file("--xml", options.xml,
                              "Show the machine that this file of hwloc's describes instead of "
                              "this one; WEFT_TOPO_XML does the same")
                         ->group(machine);
  CLI::Option* peer = add_file("--peer-xml", options.peer_xml,
                               "Show as well which NICs would talk to which of this other machine")
                          ->group(machine);
  CLI::Option* svg = add_file("--svg", options.svg, "Draw the machine too; needs Graphviz");
  CLI::Option* png = add_file("--png", options.png, "Likewise, in pixels");
  svg->group(files);
  png->group(files);
  add_file("--capture", options.capture,
           "Only write this machine to a file for --xml, to be attached to a bug report; without "
           "serial numbers, addresses of NICs, or names of hosts")
      ->excludes(xml, peer, svg, png)
      ->group(files);
  add_console(command, options.console, false);
}

void add_options(CLI::App& command, ExplainOptions& options) {
  const std::string group = "Transfer";
  add_parsed(command, "--from", options.from, parse_place,
             "The memory on this side; without it, host memory")
      ->type_name("host|node:N|gpu:N")
      ->group(group);
  add_parsed(command, "--to", options.to, parse_destination,
             "An engine that listens, such as weft decode's, and its memory; without it, or with "
             "'local', a second engine in this process")
      ->type_name("HOST:PORT[:node:N|:gpu:N]")
      ->group(group);
  add_choice(command, "--direction", options.direction, direction_names,
             "Into the other engine's memory, or out of it")
      ->group(group);
  add_choice(command, "--priority", options.priority, priority_names,
             "The transfer's class, which may have a policy of its own")
      ->group(group);
  add_parsed(command, "--policy", options.policy, parse_policy,
             "What the path must be like, as max-copies=0,forbid-cpu-copies,require-gpudirect,"
             "min-gbps=100,providers=efa+verbs; if it is not, that is said, and the command fails")
      ->type_name("POLICY")
      ->group(group);
  command.add_option("--svg", options.svg, "Draw the path too; needs Graphviz")
      ->type_name("FILE")
      ->group("Files");
  add_timeout(command, options.timeout);
  add_fabric(command, options.fabric);
  add_console(command, options.console, false);
}

void add_options(CLI::App& command, DecodeOptions& options) {
  const std::string group = "Address";
  command
      .add_option("--listen", options.listen,
                  "Where prefill reaches this process; port 0 lets the system choose")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--advertise", options.advertise,
                  "The address told to others where it differs from the one listened on")
      ->type_name("HOST:PORT")
      ->group(group);
  command
      .add_flag("--allow-unauthenticated-network", options.allow_unauthenticated_network,
                "Listen beyond loopback although anyone who reaches the port may write to the "
                "granted blocks")
      ->group(group);
  command
      .add_option("--ready-fd", options.ready_fd,
                  "Write the address and a newline to this open descriptor once listening")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber.description(""))
      ->group(group);
  add_metrics(command, options.metrics);
  add_model(command, options.cache, false);
  add_layout(command, options.cache);
  add_tensor_parallel(command, options.cache.layout.tp);
  command
      .add_option("--requests", options.requests,
                  "Refuse a prefill that comes with another number of requests")
      ->type_name("N")
      ->group("Work");
  add_timeout(command, options.timeout);
  add_fabric(command, options.fabric);
  add_console(command, options.console, true);
}

void add_options(CLI::App& command, PrefillOptions& options) {
  command.add_option("--peer", options.peer, "Where decode listens")
      ->type_name("HOST:PORT")
      ->required()
      ->group("Address");
  add_metrics(command, options.metrics);
  add_model(command, options.cache, true);
  add_layout(command, options.cache);
  add_tensor_parallel(command, options.cache.layout.tp);
  add_work(command, options.work);
  add_timeout(command, options.timeout);
  add_fabric(command, options.fabric);
  add_explain(command, options.explain);
  add_console(command, options.console, true);
}

void add_options(CLI::App& command, DemoOptions& options) {
  options.cache.model = "Llama-3.1-8B";
  add_model(command, options.cache, false);
  command.get_option("--model")->description(
      "Whose KV shape: a name such as Llama-3.1-8B, or an id on the Hugging Face hub");
  command.get_option("--model")->capture_default_str();
  command.get_option("--dtype")->description("Element type; without it, bf16");
  add_layout(command, options.cache);
  add_layout(command, "decode-", ", on the decode side", options.decode_block_tokens,
             options.decode_blocks, options.decode_order, options.decode_parts,
             options.decode_head_order);
  add_work(command, options.work);
  add_timeout(command, options.timeout);
  add_fabric(command, options.fabric);
  add_explain(command, options.explain);
  add_console(command, options.console, true);
}

void add_options(CLI::App& command, NixlOptions& options) {
  const std::string group = "NIXL";
  add_choice(command, "action", options.action, nixl_action_names, "What to do")->required();
  command
      .add_option("--python", options.python,
                  "Whose NIXL: an interpreter, or the folder of a virtual environment; without it, "
                  "that of $VIRTUAL_ENV, else python3")
      ->type_name("PATH")
      ->group(group);
  CLI::Option* const as =
      command
          .add_option("--as", options.as,
                      "Take the name of one of NIXL's own backends, such as UCX, for servers that "
                      "take no other; NIXL's own is kept, and uninstall gives it the name back")
          ->type_name("NAME")
          ->check(backend_of_others())
          ->group(group);
  add_timeout(command, options.timeout);
  add_console(command, options.console, false);
  command.callback([&options, as] {
    if (options.action == NixlAction::status && as->count() > 0)
      throw CLI::ValidationError("--as", "status opens each backend that leads to Weft anyway");
  });
}

Config engine_config(const FabricOptions& options) {
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

Nanoseconds timeout_of(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

std::vector<std::string> arguments(const FabricOptions& options) {
  std::vector<std::string> list = {"--rails",     std::to_string(options.rails),
                                   "--threads",   std::to_string(options.threads),
                                   "--chunk",     std::to_string(options.chunk_bytes),
                                   "--window",    std::to_string(options.window),
                                   "--transport", name_of(transport_names, options.transport)};
  if (!options.providers.empty()) {
    list.insert(list.end(), {"--providers", fmt::format("{}", fmt::join(options.providers, ","))});
  }
  if (!options.nics.empty())
    list.insert(list.end(), {"--nics", fmt::format("{}", fmt::join(options.nics, ","))});
  if (!options.rail_address.empty())
    list.insert(list.end(), {"--rail-address", options.rail_address});
  const auto credentials = arguments(options.credentials);
  list.insert(list.end(), credentials.begin(), credentials.end());
  return list;
}

std::vector<std::string> arguments(const WorkOptions& options) {
  return {"--tokens",       std::to_string(options.tokens),
          "--requests",     std::to_string(options.requests),
          "--concurrency",  std::to_string(options.concurrency),
          "--layer-groups", std::to_string(options.layer_groups)};
}

std::vector<std::string> arguments(const kv::LayoutOptions& options) {
  return {"--block-tokens", std::to_string(options.tokens_per_block),
          "--blocks",       std::to_string(options.blocks),
          "--order",        name_of(order_names, options.order),
          "--parts",        name_of(parts_names, options.parts),
          "--head-order",   name_of(head_order_names, options.head_order)};
}

}  // namespace weft::tool
