#include "demo/commands.hpp"

#include <fmt/format.h>

#include "common/gpu_memory.hpp"
#include "common/memory_place.hpp"
#include "common/options.hpp"
#include "demo/protocol.hpp"

namespace weft::tool {
namespace {

void add_model(CLI::App& command, CacheOptions& options, const std::string& otherwise) {
  OptionGroup group(command, "Model");
  command
      .add_option("--model", options.model,
                  "Model with this KV shape: " + known_models() + otherwise)
      ->type_name("NAME")
      ->check(known_model())
      ->group("Model");
  group.choice("--dtype", options.dtype, dtype_names, "Element type" + otherwise);
}

/// Of this machine: a GPU that it lacks makes a wrong command line, before anything is waited for.
Result<std::string> parse_memory(const std::string& text) {
  if (auto checked = check_memory(text); !checked) return fail(std::move(checked.error()));
  const int gpu = gpu_of(text);
  if (gpu < 0) return text;
  return gpu_pci(gpu).map([&](const std::string&) { return text; });
}

/// The target may be optional.
template <typename Target>
CLI::Option* add_memory(OptionGroup& group, const std::string& name, Target& memory,
                        const std::string& text) {
  return group.parsed(name, memory, parse_memory, "host|shared|node:N|gpu:N", text);
}

/// `whose` tells decode's options from prefill's, as `prefix` does; the targets may be optional.
template <typename Number, typename Order, typename Placement, typename HeadOrder>
void add_layout(OptionGroup& group, const std::string& prefix, const std::string& whose,
                Number& block_tokens, Number& blocks, Order& order, Placement& placement,
                HeadOrder& head_order) {
  group.number("--" + prefix + "block-tokens", block_tokens, Multiples::decimal,
               {1, max_tokens_per_block},
               "Tokens of a block (vLLM's block_size, SGLang's page_size)" + whose);
  group.number(
      "--" + prefix + "blocks", blocks, Multiples::decimal, {},
      "Blocks in the cache; 0: enough for the requests in flight and some to spare" + whose);
  group.choice("--" + prefix + "order", order, order_names,
               "Outer dimension of the layout: layers, each with its blocks, or blocks" + whose);
  group.choice("--" + prefix + "placement", placement, placement_names,
               "Keys and values apart, or behind one another in each block" + whose);
  group.choice("--" + prefix + "head-order", head_order, head_order_names,
               "In a page: tokens before heads, or heads before tokens" + whose);
}

void add_layout(CLI::App& command, CacheOptions& options) {
  OptionGroup group(command, "Cache");
  kv::LayoutOptions& layout = options.layout;
  add_memory(group, "--memory", options.memory,
             fmt::format("Memory of the cache: {}", kinds_of_memory))
      ->default_str(options.memory);
  add_layout(group, "", "", layout.tokens_per_block, layout.blocks, layout.order, layout.placement,
             layout.head_order);
  group
      .number("--seed", options.seed, Multiples::decimal, {},
              "Random seed for block order and contents")
      ->default_str("1");
}

/// A number of ranks and one of them.
void add_share(OptionGroup& group, const std::string& name, kv::Share& share,
               const std::string& ranks, const std::string& rank) {
  group.number("--" + name + "-size", share.size, Multiples::decimal, {1, max_ranks}, ranks)
      ->default_str("1");
  group.number("--" + name + "-rank", share.rank, Multiples::decimal, {0, max_ranks - 1}, rank)
      ->default_str("0");
}

/// `whose` tells decode's options from prefill's, as `prefix` does.
void add_ranks(CLI::App& command, const std::string& prefix, const std::string& whose,
               Ranks& ranks) {
  OptionGroup group(command, "Cache");
  add_share(group, prefix + "tp", ranks.tp, "Tensor-parallel ranks" + whose,
            "The rank that takes part");
  add_share(group, prefix + "pp", ranks.pp, "Pipeline stages" + whose, "The stage of that rank");
  add_share(group, prefix + "dp", ranks.dp, "Replicas of data-parallel attention" + whose,
            "The replica of that rank");
}

void check_share(const std::string& name, kv::Share share) {
  if (share.rank < share.size) return;
  throw CLI::ValidationError("--" + name + "-rank",
                             fmt::format("{} is no rank of --{}-size {}: they count from 0",
                                         share.rank, name, share.size));
}

void check(const std::string& prefix, const Ranks& ranks) {
  check_share(prefix + "tp", ranks.tp);
  check_share(prefix + "pp", ranks.pp);
  check_share(prefix + "dp", ranks.dp);
}

/// Checks that the options fit together, before the process waits for the other side. A side that
/// takes any model checks its layout later.
void check(const CacheOptions& options) {
  check("", options.ranks);
  if (!options.model) return;
  const auto model = kv::find_model(*options.model);
  if (!model) return;
  const CacheShape shape = options.shape(*model, options.dtype.value_or(kv::DType::bf16), 1, 1);
  if (const auto layout = shape.layout(); !layout)
    throw CLI::ValidationError(options.ranks.tp.size > 1   ? "--tp-size"
                               : options.ranks.pp.size > 1 ? "--pp-size"
                                                           : "--model",
                               layout.error().message());
}

void add_work(CLI::App& command, WorkOptions& options) {
  OptionGroup group(command, "Work");
  group
      .number("--tokens", options.tokens, Multiples::binary, {1, max_tokens},
              "Tokens of each request")
      ->default_str("4K");
  group
      .number("--requests", options.requests, Multiples::decimal, {1, max_requests},
              "Requests to hand over")
      ->default_str("8");
  group
      .number("--concurrency", options.concurrency, Multiples::decimal, {1, max_concurrency},
              "Requests in flight at a time")
      ->default_str("2");
  group
      .number("--layer-groups", options.layer_groups, Multiples::decimal, {1, 1024},
              "Transfers that a request is cut into, each with some layers and a signal of its own")
      ->default_str("8");
}

void add_explain(CLI::App& command, bool& explain) {
  OptionGroup(command, "Output")
      .flag("--explain", explain,
            "Also show the path that was declared before the first transfer beside what the "
            "transfers' ledgers say, and where the two differ");
}

void add_timeout(CLI::App& command, Nanoseconds& timeout) {
  OptionGroup group(command, "Work");
  add_timeout(group, timeout);
}

}  // namespace

CacheShape CacheOptions::shape(const kv::Model& of, kv::DType elements, std::uint64_t tokens,
                               std::uint32_t concurrency) const {
  CacheShape shape{of, layout, ranks.pp};
  shape.options.parallel.tp = ranks.tp;
  shape.options.parallel.dp = ranks.dp;
  shape.options.dtype = elements;
  if (shape.options.blocks == 0) {
    const std::uint32_t needed = shape.blocks_for(tokens) * concurrency;
    // The spare ones lie between the others, and nobody may write to them.
    shape.options.blocks = needed + needed / 16 + 2;
  }
  shape.options.state_blocks = concurrency + 2;
  return shape;
}

kv::LayoutOptions DemoOptions::decode_layout() const {
  kv::LayoutOptions decode = cache.layout;
  decode.tokens_per_block = decode_block_tokens.value_or(decode.tokens_per_block);
  decode.blocks = decode_blocks.value_or(0);
  decode.order = decode_order.value_or(decode.order);
  decode.placement = decode_placement.value_or(decode.placement);
  decode.head_order = decode_head_order.value_or(decode.head_order);
  return decode;
}

void add_options(CLI::App& command, DecodeOptions& options) {
  OptionGroup address(command, "Address"), work(command, "Work");
  address
      .text("--listen", options.listen, "HOST:PORT",
            "Where prefill reaches this process; port 0: the system chooses")
      ->default_str(options.listen);
  add_advertise(address, options.advertise);
  add_unauthenticated(address, options.allow_unauthenticated_network);
  add_ready_fd(address, options.ready_fd);
  add_metrics(address, options.metrics);
  add_model(command, options.cache, "; without it, prefill's");
  add_layout(command, options.cache);
  add_ranks(command, "", " of this side", options.cache.ranks);
  work.number("--requests", options.requests, Multiples::decimal, {},
              "Refuse a prefill that comes with another number of requests");
  add_timeout(command, options.timeout);
  add_engine(command, options.engine);
  add_console(command, options.console, true);
  command.parse_complete_callback([&options] {
    check(options.cache);
    const std::string wrong = complaint_about_listening(options.listen, options.advertise);
    if (!wrong.empty()) throw CLI::ParseError(wrong, exit_usage);
  });
}

void add_options(CLI::App& command, PrefillOptions& options) {
  OptionGroup address(command, "Address");
  address.text("--peer", options.peer, "HOST:PORT", "Where decode listens")->required();
  add_metrics(address, options.metrics);
  add_model(command, options.cache, "");
  command.get_option("--model")->required();
  command.get_option("--dtype")->default_str("bf16");
  add_layout(command, options.cache);
  add_ranks(command, "", " of this side", options.cache.ranks);
  add_work(command, options.work);
  add_timeout(command, options.timeout);
  add_engine(command, options.engine);
  add_explain(command, options.explain);
  add_console(command, options.console, true);
  command.parse_complete_callback([&options] { check(options.cache); });
}

void add_options(CLI::App& command, DemoOptions& options) {
  options.cache.model = "Llama-3.1-8B";
  add_model(command, options.cache, "");
  command.get_option("--model")->default_str(*options.cache.model);
  command.get_option("--dtype")->default_str("bf16");
  add_layout(command, options.cache);
  OptionGroup cache(command, "Cache");
  add_memory(cache, "--decode-memory", options.decode_memory,
             "Memory of the cache on the decode side, where it differs");
  add_layout(cache, "decode-", ", on the decode side", options.decode_block_tokens,
             options.decode_blocks, options.decode_order, options.decode_placement,
             options.decode_head_order);
  add_ranks(command, "", ", on the prefill side", options.cache.ranks);
  add_ranks(command, "decode-", ", on the decode side", options.decode_ranks);
  add_work(command, options.work);
  add_timeout(command, options.timeout);
  add_engine(command, options.engine);
  add_explain(command, options.explain);
  add_console(command, options.console, true);
  command.parse_complete_callback([&options] {
    check(options.cache);
    check("decode-", options.decode_ranks);
  });
}

std::vector<std::string> arguments(const WorkOptions& options) {
  return {"--tokens",       std::to_string(options.tokens),
          "--requests",     std::to_string(options.requests),
          "--concurrency",  std::to_string(options.concurrency),
          "--layer-groups", std::to_string(options.layer_groups)};
}

std::vector<std::string> arguments(const Ranks& ranks) {
  std::vector<std::string> list;
  for (const auto& [name, share] :
       {std::pair("tp", ranks.tp), std::pair("pp", ranks.pp), std::pair("dp", ranks.dp)})
    list.insert(list.end(), {fmt::format("--{}-size", name), std::to_string(share.size),
                             fmt::format("--{}-rank", name), std::to_string(share.rank)});
  return list;
}

std::vector<std::string> arguments(const kv::LayoutOptions& options) {
  return {"--block-tokens", std::to_string(options.tokens_per_block),
          "--blocks",       std::to_string(options.blocks),
          "--order",        name_of(order_names, options.order),
          "--placement",    name_of(placement_names, options.placement),
          "--head-order",   name_of(head_order_names, options.head_order)};
}

}  // namespace weft::tool
