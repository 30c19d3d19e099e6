// The C API: layouts of KV caches and plans between them.
#include <weft/kv_models.hpp>

#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

template <typename Number>
Number or_default(Number given, Number otherwise) {
  return given != 0 ? given : otherwise;
}

/// The choices that a group and a model's layout have in common.
template <typename Given, typename Known>
Result<void> read_choices(const Given& given, kv::Parts last_parts, Known& known) {
  const auto parts = enumerator("parts", given.parts, kv::Parts::split, last_parts);
  if (!parts) return fail(parts.error());
  const auto order =
      enumerator("order", given.order, kv::Order::layer_major, kv::Order::block_major);
  if (!order) return fail(order.error());
  const auto head_order =
      enumerator("head_order", given.head_order, kv::HeadOrder::nhd, kv::HeadOrder::hnd);
  if (!head_order) return fail(head_order.error());
  const auto regions =
      enumerator("regions", given.regions, kv::Regions::one, kv::Regions::per_layer_and_part);
  if (!regions) return fail(regions.error());
  known.parts = *parts;
  known.order = *order;
  known.head_order = *head_order;
  known.regions = *regions;
  known.blocks = given.blocks;
  known.block_padding = given.block_padding;
  known.block_alignment = or_default(given.block_alignment, known.block_alignment);
  return {};
}

Result<kv::LayoutOptions> from_c(const weft_kv_layout_options& given) {
  kv::LayoutOptions options;
  return enumerator("dtype", given.dtype, kv::DType::bf16, kv::DType::fp8)
      .and_then([&](kv::DType dtype) {
        options.dtype = dtype;
        return read_choices(given, kv::Parts::fused, options);
      })
      .map([&] {
        options.tokens_per_block = or_default(given.tokens_per_block, options.tokens_per_block);
        options.tp = {or_default(given.tp_size, options.tp.size), given.tp_rank};
        return options;
      });
}

Result<kv::Group> from_c(const weft_kv_group& given) {
  kv::Group group;
  return check({list("group->layers", given.layers, given.layer_count)})
      .and_then([&] { return read_choices(given, kv::Parts::latent, group); })
      .map([&] {
        const std::span layers(given.layers, given.layer_count);
        group.layers.assign(layers.begin(), layers.end());
        group.tokens_per_block = given.tokens_per_block;
        group.kv_heads = given.kv_heads;
        group.head_size = given.head_size;
        group.element_size = given.element_size;
        group.window = given.window;
        return group;
      });
}

Result<std::vector<kv::Group>> from_c(std::span<const weft_kv_group* const> given) {
  std::vector<kv::Group> groups;
  for (const weft_kv_group* each : given) {
    auto group = check({{"groups[i]", each}})
                     .and_then([&] { return read("groups[i]", each); })
                     .and_then([](const weft_kv_group& known) { return from_c(known); });
    if (!group) return fail(std::move(group.error()));
    groups.push_back(std::move(*group));
  }
  return groups;
}

Result<std::vector<kv::Blocks>> from_c(std::span<const weft_kv_blocks> given) {
  std::vector<kv::Blocks> blocks;
  for (const weft_kv_blocks& each : given) {
    if (auto checked = check({list("blocks[i].src", each.src, each.src_count),
                              list("blocks[i].dst", each.dst, each.dst_count)});
        !checked)
      return fail(std::move(checked.error()));
    blocks.push_back({{each.src, each.src_count},
                      {each.dst, each.dst_count},
                      each.tokens == WEFT_KV_ALL_TOKENS ? std::nullopt : std::optional(each.tokens),
                      each.src_skip,
                      each.dst_skip});
  }
  return blocks;
}

// The names are literals, which end with a zero byte.
weft_kv_model to_c(const kv::Model& model) {
  weft_kv_model c{};
  c.name = model.name.data();
  c.id = model.id.data();
  c.layers = model.layers;
  c.kv_heads = model.kv_heads;
  c.head_size = model.head_size;
  c.window = model.window;
  c.bytes_per_token_bf16 = model.bytes_per_token(kv::DType::bf16);
  return c;
}

weft_kv_plan to_c(const kv::Plan& plan) {
  weft_kv_plan c{{}, plan.bytes, plan.pieces};
  c.copies.reserve(plan.copies.size());
  for (const kv::Copy& copy : plan.copies)
    c.copies.push_back(
        {copy.src_region, copy.dst_region, copy.src_offset, copy.dst_offset, copy.length});
  return c;
}

}  // namespace

size_t weft_kv_model_count(void) {
  return kv::models().size();
}

weft_code weft_kv_model_at(size_t index, weft_kv_model* model, weft_error** error) {
  return call(error, {{"model", model}}, [&] {
    return at("model", kv::models(), index).and_then([&](const kv::Model* found) {
      return fill("model", model, to_c(*found));
    });
  });
}

weft_code weft_kv_find_model(const char* name, weft_kv_model* model, weft_error** error) {
  return call(error, {{"name", name}, {"model", model}}, [&] {
    return kv::find_model(name).and_then(
        [&](const kv::Model& found) { return fill("model", model, to_c(found)); });
  });
}

weft_code weft_kv_layout_of_model(const char* model, const weft_kv_layout_options* options,
                                  weft_kv_layout** layout, weft_error** error) {
  return call(error, {{"model", model}, {"options", options}, {"layout", layout}}, [&] {
    return kv::find_model(model).and_then([&](const kv::Model& found) {
      return read("options", options)
          .and_then([](const weft_kv_layout_options& known) { return from_c(known); })
          .and_then(
              [&](const kv::LayoutOptions& known) { return give(layout, found.layout(known)); });
    });
  });
}

weft_code weft_kv_layout_create(const weft_kv_group* const* groups, size_t count, uint32_t tp_size,
                                uint32_t tp_rank, weft_kv_layout** layout, weft_error** error) {
  return call(error, {list("groups", groups, count), {"layout", layout}}, [&] {
    return from_c(std::span(groups, count)).and_then([&](std::vector<kv::Group>&& known) {
      return give(layout, kv::Layout::create(std::move(known), {tp_size, tp_rank}));
    });
  });
}

void weft_kv_layout_free(weft_kv_layout* layout) {
  delete layout;
}

size_t weft_kv_layout_group_count(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.groups().size() : 0;
}
size_t weft_kv_layout_region_count(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.region_bytes().size() : 0;
}
uint64_t weft_kv_layout_region_bytes(const weft_kv_layout* layout, size_t index) {
  return index < weft_kv_layout_region_count(layout) ? layout->value.region_bytes()[index] : 0;
}
uint64_t weft_kv_layout_bytes(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.bytes() : 0;
}
uint64_t weft_kv_layout_bytes_per_token(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.bytes_per_token() : 0;
}

weft_code weft_kv_source_ranks(const weft_kv_layout* src, const weft_kv_layout* dst,
                               uint32_t* ranks, size_t capacity, size_t* count,
                               weft_error** error) {
  return call(error, {{"src", src}, {"dst", dst}, list("ranks", ranks, capacity), {"count", count}},
              [&] {
                return kv::source_ranks(src->value, dst->value).map([&](const auto& found) {
                  std::copy_n(found.begin(), std::min(capacity, found.size()), ranks);
                  *count = found.size();
                });
              });
}

weft_code weft_kv_cache_create(const weft_kv_layout* layout, const weft_kv_base* bases,
                               size_t count, weft_kv_cache** cache, weft_error** error) {
  return call(error, {{"layout", layout}, list("bases", bases, count), {"cache", cache}}, [&] {
    if (count == 0) return give(cache, kv::Cache::contiguous(layout->value));
    std::vector<kv::Base> known;
    for (const weft_kv_base& base : std::span(bases, count))
      known.push_back({base.region, base.offset});
    return give(cache, kv::Cache::create(layout->value, std::move(known)));
  });
}

void weft_kv_cache_free(weft_kv_cache* cache) {
  delete cache;
}

weft_code weft_kv_plan_create(const weft_kv_cache* src, const weft_kv_cache* dst,
                              const weft_kv_blocks* blocks, size_t group_count,
                              uint32_t first_layer, uint32_t layer_count, weft_kv_plan** plan,
                              weft_error** error) {
  return call(
      error, {{"src", src}, {"dst", dst}, list("blocks", blocks, group_count), {"plan", plan}},
      [&]() -> Result<void> {
        if (layer_count == 0 && first_layer != 0)
          return fail(Code::invalid_argument,
                      fmt::format("no layers from layer {} on were asked for", first_layer));
        std::optional<kv::LayerRange> layers;
        if (layer_count > 0) layers = kv::LayerRange{first_layer, layer_count};
        return from_c(std::span(blocks, group_count)).and_then([&](const auto& known) {
          return give(plan,
                      kv::plan(src->value, dst->value, known, layers).map([](const kv::Plan& made) {
                        return to_c(made);
                      }));
        });
      });
}

void weft_kv_plan_free(weft_kv_plan* plan) {
  delete plan;
}

const weft_kv_copy* weft_kv_plan_copies(const weft_kv_plan* plan) {
  return plan != nullptr ? plan->copies.data() : nullptr;
}
size_t weft_kv_plan_count(const weft_kv_plan* plan) {
  return plan != nullptr ? plan->copies.size() : 0;
}
uint64_t weft_kv_plan_bytes(const weft_kv_plan* plan) {
  return plan != nullptr ? plan->bytes : 0;
}
uint64_t weft_kv_plan_pieces(const weft_kv_plan* plan) {
  return plan != nullptr ? plan->pieces : 0;
}
