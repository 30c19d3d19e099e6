// A KV cache in one process's GPU, a tensor for each layer as vLLM has them, goes to another
// process's GPU, whose cache is of another shape and in one piece: layer by layer, with a signal
// behind each.
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>

#include "owner.hpp"

namespace weft::test {
namespace {

constexpr std::uint64_t theirs = 1, first_layer = 100;  // streams

kv::Cache prefill_cache(const kv::Model& model) {
  auto layout = must(model.layout({.tokens_per_block = 16,
                                   .blocks = 24,
                                   .parallel = {.tp = {2, 1}},
                                   .regions = kv::Regions::per_layer}));
  std::vector<kv::Base> bases;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) bases.push_back({layer, 0});
  return must(kv::Cache::create(std::move(layout), std::move(bases)));
}

kv::Cache decode_cache(const kv::Model& model) {
  return must(kv::Cache::contiguous(
      must(model.layout({.tokens_per_block = 64, .blocks = 5, .block_padding = 64}))));
}

/// The cache of the process that prefills: a segment for each layer.
struct Layers {
  Layers(Engine& engine, std::span<const std::uint64_t> bytes) {
    for (const std::uint64_t each : bytes) {
      stores.push_back(std::make_unique<Store>(0, each));
      stores.back()->fill(first_layer + stores.size() - 1);
      segments.push_back(must(engine.add(stores.back()->memory())));
    }
  }
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<Segment> segments;
};

class Kv : public testing::TestWithParam<std::string> {};

TEST_P(Kv, GoesLayerByLayerIntoACacheOfAnotherShape) {
  const kv::Model model = must(kv::find_model("Llama-3.1-8B"));
  const kv::Cache from = prefill_cache(model), to = decode_cache(model);
  const std::vector<std::uint32_t> source = {7, 8, 9, 12, 3, 20}, target = {4, 1};
  const kv::Blocks here[] = {{.ids = source}}, there[] = {{.ids = target}};

  ASSERT_GT(gpus(), 0);
  Owner owner(GetParam(), true, to.layout().bytes());
  Engine engine = must(Engine::open(config_for(GetParam())));
  const Remote remote = owner.meet(engine);
  owner.fill(theirs);
  Layers layers(engine, from.layout().region_bytes());

  std::vector<Transfer> transfers;
  std::vector<Landed> pieces;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    const kv::Plan plan =
        must(kv::plan(from, here, to, there, {.count = 90}, kv::LayerRange{layer, 1}));
    std::vector<Pair> pairs;
    for (const kv::Copy& copy : plan.copies) {
      ASSERT_EQ(copy.src_region, layer);
      pairs.push_back({copy.src_offset, copy.dst_offset, copy.length});
      pieces.push_back({first_layer + layer, copy.dst_offset, copy.src_offset, copy.length});
    }
    TransferOptions options;
    options.transport = TransportKind::bounce;
    options.signal = Signal{arrival};
    transfers.push_back(must(engine.write(layers.segments[layer], remote, pairs, options)));
  }
  for (Transfer& transfer : transfers) EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_TRUE(owner.holds(theirs, pieces, model.layers));
  for (std::uint32_t layer = 0; layer < model.layers; ++layer)
    EXPECT_TRUE(layers.stores[layer]->holds(first_layer + layer));
  for (Segment& segment : layers.segments) EXPECT_TRUE(succeeds(segment.release(soon())));
  owner.end();
}

INSTANTIATE_TEST_SUITE_P(Gpu, Kv, testing::ValuesIn(all_providers()),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace weft::test
