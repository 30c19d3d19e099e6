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
Result<void> read_choices(const Given& given, Known& known) {
  const auto placement =
      enumerator("placement", given.placement, kv::Placement::split, kv::Placement::fused);
  if (!placement) return fail(placement.error());
  const auto order =
      enumerator("order", given.order, kv::Order::layer_major, kv::Order::block_major);
  if (!order) return fail(order.error());
  const auto head_order =
      enumerator("head_order", given.head_order, kv::HeadOrder::nhd, kv::HeadOrder::hnd);
  if (!head_order) return fail(head_order.error());
  const auto regions =
      enumerator("regions", given.regions, kv::Regions::one, kv::Regions::per_layer_and_field);
  if (!regions) return fail(regions.error());
  known.placement = *placement;
  known.order = *order;
  known.head_order = *head_order;
  known.regions = *regions;
  known.blocks = given.blocks;
  known.block_padding = given.block_padding;
  known.block_alignment = or_default(given.block_alignment, known.block_alignment);
  return {};
}

Result<kv::Parallel> parallel_of(const weft_kv_parallel* given) {
  return read_optional("parallel", given).map([](const weft_kv_parallel& known) {
    return kv::Parallel{
        .tp = {or_default(known.tp_size, 1U), known.tp_rank},
        .dcp = {or_default(known.dcp_size, 1U), or_default(known.dcp_interleave, 1U)},
        .dp = {or_default(known.dp_size, 1U), known.dp_rank}};
  });
}

/// No range: all layers.
Result<std::optional<kv::LayerRange>> layers_of(std::uint32_t first, std::uint32_t count) {
  if (count == 0 && first != 0)
    return fail(Code::invalid_argument,
                fmt::format("no layers from layer {} on were asked for", first));
  if (count == 0) return std::optional<kv::LayerRange>();
  return std::optional(kv::LayerRange{first, count});
}

Result<kv::LayoutOptions> from_c(const weft_kv_layout_options& given) {
  kv::LayoutOptions options;
  const auto dtype = enumerator("dtype", given.dtype, kv::DType::bf16, kv::DType::int8);
  if (!dtype) return fail(dtype.error());
  if (auto read = read_choices(given, options); !read) return fail(std::move(read.error()));
  const auto layers = layers_of(given.first_layer, given.layer_count);
  if (!layers) return fail(layers.error());
  const auto parallel = parallel_of(given.parallel);
  if (!parallel) return fail(parallel.error());
  options.dtype = *dtype;
  options.layers = *layers;
  options.parallel = *parallel;
  options.tokens_per_block = or_default(given.tokens_per_block, options.tokens_per_block);
  options.state_blocks = given.state_blocks;
  return options;
}

Result<kv::Field> from_c(const weft_kv_field& given) {
  if (auto checked = check({{"fields[i].name", given.name},
                            list("fields[i].pieces", given.pieces, given.piece_count)});
      !checked)
    return fail(std::move(checked.error()));
  kv::Field field;
  field.name = given.name;
  field.heads = given.heads;
  field.tokens_per_row = or_default(given.tokens_per_row, 1U);
  field.rows = or_default(given.rows, 1U);
  field.beside = given.beside;
  for (const weft_kv_piece& piece : std::span(given.pieces, given.piece_count)) {
    const auto type = enumerator("pieces[i].type", piece.type, kv::DType::bf16, kv::DType::int8);
    if (!type) return fail(type.error());
    field.vector.push_back({*type, piece.elements});
  }
  return field;
}

Result<kv::Group> from_c(const weft_kv_group& given) {
  kv::Group group;
  if (auto checked = check({list("group->layers", given.layers, given.layer_count),
                            list("group->fields", given.fields, given.field_count)});
      !checked)
    return fail(std::move(checked.error()));
  if (auto read = read_choices(given, group); !read) return fail(std::move(read.error()));
  const std::span layers(given.layers, given.layer_count);
  group.layers.assign(layers.begin(), layers.end());
  group.tokens_per_block = given.tokens_per_block;
  group.window = given.window;
  for (const weft_kv_field& each : std::span(given.fields, given.field_count)) {
    auto field = from_c(each);
    if (!field) return fail(std::move(field.error()));
    group.fields.push_back(std::move(*field));
  }
  return group;
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

kv::TokenRange from_c(const weft_kv_token_range& range) {
  return {range.first, range.count};
}

std::optional<kv::TokenRange> from_c(const weft_kv_token_range* range) {
  return range != nullptr ? std::optional(from_c(*range)) : std::nullopt;
}

Result<std::vector<kv::Blocks>> from_c(std::span<const weft_kv_blocks> given) {
  std::vector<kv::Blocks> blocks;
  for (const weft_kv_blocks& each : given) {
    if (auto checked = check({list("blocks[i].ids", each.ids, each.count)}); !checked)
      return fail(std::move(checked.error()));
    blocks.push_back({{each.ids, each.count}, each.first_token, from_c(each.tokens)});
  }
  return blocks;
}

Result<std::vector<kv::Layout>> from_c(std::span<const weft_kv_layout* const> given) {
  std::vector<kv::Layout> layouts;
  for (const weft_kv_layout* each : given) {
    if (auto checked = check({{"stages[i]", each}}); !checked)
      return fail(std::move(checked.error()));
    layouts.push_back(each->value);
  }
  return layouts;
}

std::vector<kv::BlockHash> from_c(std::span<const weft_kv_hash> given) {
  std::vector<kv::BlockHash> hashes(given.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    std::memcpy(hashes[i].data(), given[i].bytes, sizeof given[i].bytes);
  return hashes;
}

weft_kv_model to_c(const kv::Model& model) {
  weft_kv_model c{};
  c.name = model.name.c_str();
  c.id = model.id.c_str();
  c.layers = model.layers;
  c.bytes_per_token_bf16 = model.bytes_per_token(kv::DType::bf16);
  c.state_bytes = model.state_bytes();
  return c;
}

weft_kv_group_info to_c(const kv::Group& group) {
  weft_kv_group_info c{};
  c.layers = group.layers.data();
  c.layer_count = group.layers.size();
  c.blocks = group.blocks;
  c.tokens_per_block = group.tokens_per_block;
  c.window = group.window;
  return c;
}

/// A model's layout by the caller's options.
Result<void> give_layout(const kv::Model& model, const weft_kv_layout_options* options,
                         weft_kv_layout** layout) {
  return read("options", options)
      .and_then([](const weft_kv_layout_options& known) { return from_c(known); })
      .and_then([&](const kv::LayoutOptions& known) { return give(layout, model.layout(known)); });
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
    return kv::find_model(name).and_then([&](const kv::Model& found) {
      // Of the list, whose strings stay.
      const auto known = kv::models();
      const auto same = std::find_if(known.begin(), known.end(), [&](const kv::Model& each) {
        return each.name == found.name;
      });
      return fill("model", model, to_c(*same));
    });
  });
}

weft_code weft_kv_layout_of_model(const char* model, const weft_kv_layout_options* options,
                                  weft_kv_layout** layout, weft_error** error) {
  return call(error, {{"model", model}, {"options", options}, {"layout", layout}}, [&] {
    return kv::find_model(model).and_then(
        [&](const kv::Model& found) { return give_layout(found, options, layout); });
  });
}

weft_code weft_kv_layout_of_config(const char* json, size_t bytes,
                                   const weft_kv_layout_options* options, weft_kv_layout** layout,
                                   weft_error** error) {
  return call(error, {{"json", json}, {"options", options}, {"layout", layout}}, [&] {
    return kv::from_config({json, bytes}).and_then([&](const kv::Model& found) {
      return give_layout(found, options, layout);
    });
  });
}

weft_code weft_kv_layout_create(const weft_kv_group* const* groups, size_t count,
                                const weft_kv_parallel* parallel, weft_kv_layout** layout,
                                weft_error** error) {
  return call(error, {list("groups", groups, count), {"layout", layout}}, [&]() -> Result<void> {
    auto known = from_c(std::span(groups, count));
    if (!known) return fail(std::move(known.error()));
    const auto rank = parallel_of(parallel);
    if (!rank) return fail(rank.error());
    return give(layout, kv::Layout::create(std::move(*known), *rank));
  });
}

void weft_kv_layout_free(weft_kv_layout* layout) {
  delete layout;
}

size_t weft_kv_layout_group_count(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.groups().size() : 0;
}
weft_code weft_kv_layout_group(const weft_kv_layout* layout, size_t index, weft_kv_group_info* info,
                               weft_error** error) {
  return call(error, {{"layout", layout}, {"info", info}}, [&] {
    return at("group", layout->value.groups(), index).and_then([&](const kv::Group* group) {
      return fill("info", info, to_c(*group));
    });
  });
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

uint64_t weft_kv_layout_state_bytes(const weft_kv_layout* layout) {
  return layout != nullptr ? layout->value.state_bytes() : 0;
}

void weft_kv_stage_layers(uint32_t layers, uint32_t size, uint32_t rank, uint32_t* first,
                          uint32_t* count) {
  const kv::LayerRange range =
      rank < size ? kv::stage_layers(layers, {size, rank}) : kv::LayerRange{};
  if (first != nullptr) *first = range.first;
  if (count != nullptr) *count = range.count;
}

weft_code weft_kv_source_ranks(const weft_kv_layout* const* stages, size_t stage_count,
                               const weft_kv_layout* dst, const weft_kv_token_range* tokens,
                               uint32_t first_layer, uint32_t layer_count, weft_kv_rank* ranks,
                               size_t capacity, size_t* count, weft_error** error) {
  return call(error,
              {list("stages", stages, stage_count),
               {"dst", dst},
               list("ranks", ranks, capacity),
               {"count", count}},
              [&]() -> Result<void> {
                const auto known = from_c(std::span(stages, stage_count));
                if (!known) return fail(known.error());
                const auto layers = layers_of(first_layer, layer_count);
                if (!layers) return fail(layers.error());
                const auto found = kv::source_ranks(*known, dst->value, from_c(tokens), *layers);
                if (!found) return fail(found.error());
                for (std::size_t i = 0; i < std::min(capacity, found->size()); ++i)
                  ranks[i] = {(*found)[i].pp, (*found)[i].tp, (*found)[i].dp};
                *count = found->size();
                return {};
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

weft_code weft_kv_missing(const weft_kv_layout* layout, size_t group, const weft_kv_hash* offered,
                          size_t offered_count, const weft_kv_hash* held, size_t held_count,
                          uint32_t tokens_per_hash, uint64_t tokens, weft_kv_token_range* missing,
                          weft_error** error) {
  return call(error,
              {{"layout", layout},
               list("offered", offered, offered_count),
               list("held", held, held_count),
               {"missing", missing}},
              [&] {
                return at("group", layout->value.groups(), group)
                    .and_then([&](const kv::Group* known) {
                      return kv::missing(*known, from_c(std::span(offered, offered_count)),
                                         from_c(std::span(held, held_count)), tokens_per_hash,
                                         tokens);
                    })
                    .map([&](kv::TokenRange range) {
                      *missing = {range.first, range.count};
                    });
              });
}

weft_code weft_kv_plan_create(const weft_kv_cache* src, const weft_kv_blocks* src_blocks,
                              size_t src_group_count, const weft_kv_cache* dst,
                              const weft_kv_blocks* dst_blocks, size_t dst_group_count,
                              weft_kv_token_range tokens, uint32_t first_layer,
                              uint32_t layer_count, weft_kv_plan** plan, weft_error** error) {
  return call(error,
              {{"src", src},
               list("src_blocks", src_blocks, src_group_count),
               {"dst", dst},
               list("dst_blocks", dst_blocks, dst_group_count),
               {"plan", plan}},
              [&]() -> Result<void> {
                const auto from = from_c(std::span(src_blocks, src_group_count));
                if (!from) return fail(from.error());
                const auto to = from_c(std::span(dst_blocks, dst_group_count));
                if (!to) return fail(to.error());
                const auto layers = layers_of(first_layer, layer_count);
                if (!layers) return fail(layers.error());
                return give(plan,
                            kv::plan(src->value, *from, dst->value, *to, from_c(tokens), *layers)
                                .map([](const kv::Plan& made) { return to_c(made); }));
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
