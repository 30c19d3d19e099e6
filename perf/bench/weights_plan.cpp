// Planning for a trillion parameters: Kimi K2's tensors, from trainers to inference ranks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>
#include <weft/weights_models.hpp>

#include "bench.hpp"

namespace weft::perf::bench {
namespace {

/// Of moonshotai/Kimi-K2-Instruct on the Hugging Face hub, the keys that bear on weights.
constexpr const char* kimi_k2 =
    R"({"model_type":"kimi_k2","hidden_size":7168,"intermediate_size":18432,
        "moe_intermediate_size":2048,"n_routed_experts":384,"n_shared_experts":1,
        "first_k_dense_replace":1,"moe_layer_freq":1,"num_hidden_layers":61,
        "num_attention_heads":64,"num_key_value_heads":64,"q_lora_rank":1536,"kv_lora_rank":512,
        "qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":163840,
        "tie_word_embeddings":false,
        "quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})";

struct Options {
  // Rows of 576 and of 1536 are dealt out unevenly over 256 ranks.
  std::string trainers = "fsdp=256,ep=64", workers = "dp=16,tp=8,ep=128";
  int times = 5;
  bool direct = false;
};

Result<weights::World> world_of(const Options& options) {
  weights::World world;
  const auto model = weights::from_config(kimi_k2, "Kimi-K2");
  if (!model) return fail(model.error());
  fmt::print("{} tensors, {} parameters, {} bytes\n", model->tensors.size(), model->parameters(),
             model->bytes());
  for (const bool trainer : {true, false}) {
    auto parallel = weights::parse_parallelism(trainer ? options.trainers : options.workers);
    if (!parallel) return fail(parallel.error());
    auto ranks = model->ranks({.parallel = *parallel,
                               .name = trainer ? "trainer" : "worker",
                               .host = trainer ? "train" : "serve"});
    if (!ranks) return fail(ranks.error());
    (trainer ? world.publishers : world.subscribers) = std::move(*ranks);
  }
  return world;
}

std::size_t shards_of(const std::vector<weights::Rank>& ranks) {
  std::size_t shards = 0;
  for (const weights::Rank& rank : ranks) shards += rank.shards.size();
  return shards;
}

Result<void> measure(const weights::World& world, weights::FanOut fan_out, const Options& options) {
  std::vector<double> seconds;
  for (int i = 0; i < options.times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = weights::plan(world, {.fan_out = fan_out});
    const auto end = std::chrono::steady_clock::now();
    if (!plan) return fail(plan.error());
    seconds.push_back(std::chrono::duration<double>(end - begin).count());
    if (i > 0) continue;
    std::size_t pieces = 0;
    for (const weights::Transfer& transfer : plan->transfers) pieces += transfer.pieces.size();
    fmt::print(
        "{}: {} transfers in {} chunks and {} hops, {} pieces, {} bytes, {} of them from "
        "trainers; predicted {:.3f} s\n",
        plan->fan_out == weights::FanOut::chain ? "chain" : "direct", plan->transfers.size(),
        plan->chunks, plan->hops, pieces, plan->bytes, plan->published, plan->predicted_seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("  planned in {:.3f} s (least), {:.3f} s (median)\n", seconds.front(),
             seconds[seconds.size() / 2]);
  return {};
}

}  // namespace

int weights_plan(int count, char** words) {
  Options options;
  CLI::App app("Plans Kimi K2's weights between ranks with 4 NICs of 100 Gb/s each.");
  app.add_option("--trainers", options.trainers, "How they share the model")->capture_default_str();
  app.add_option("--ranks", options.workers, "How inference ranks do")->capture_default_str();
  app.add_option("--times", options.times, "How often each plan is made")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--direct", options.direct, "A direct plan too, with its many pieces");
  if (const auto status = parse(app, count, words)) return *status;
  const auto world = world_of(options);
  if (!world) {
    fmt::print(stderr, "{}\n", world.error().to_string());
    return 1;
  }
  fmt::print("{} shards of {} trainers, {} of {} ranks\n", shards_of(world->publishers),
             world->publishers.size(), shards_of(world->subscribers), world->subscribers.size());
  auto ok = measure(*world, weights::FanOut::automatic, options);
  if (ok && options.direct) ok = measure(*world, weights::FanOut::direct, options);
  if (ok) return 0;
  fmt::print(stderr, "{}\n", ok.error().to_string());
  return 1;
}

}  // namespace weft::perf::bench
