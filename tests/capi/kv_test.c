/* KV layouts and plans by the C API: models, sizes, plans between ranks, refusals. */
#include "check.h"

#define INVALID(call) REFUSED(WEFT_INVALID_ARGUMENT, call)

static weft_kv_layout* llama(uint32_t tp_size, uint32_t tp_rank, uint32_t blocks,
                             uint32_t tokens_per_block) {
  const weft_kv_parallel parallel = {
      .size = sizeof parallel, .tp_size = tp_size, .tp_rank = tp_rank};
  const weft_kv_layout_options options = {.size = sizeof options,
                                          .tokens_per_block = tokens_per_block,
                                          .blocks = blocks,
                                          .parallel = &parallel};
  weft_kv_layout* layout = NULL;
  OK(weft_kv_layout_of_model("llama-3.1-8b", &options, &layout, &error));
  return layout;
}

static void models(void) {
  CHECK(weft_kv_model_count() >= 30);
  weft_kv_model model = {.size = sizeof model};
  for (size_t i = 0; i < weft_kv_model_count(); ++i) {
    OK(weft_kv_model_at(i, &model, &error));
    weft_kv_model found = {.size = sizeof found};
    OK(weft_kv_find_model(model.id, &found, &error));
    CHECK(strcmp(found.name, model.name) == 0 && found.layers == model.layers);
  }
  INVALID(weft_kv_model_at(weft_kv_model_count(), &model, &error));
  INVALID(weft_kv_model_at(0, NULL, &error));
  OK(weft_kv_find_model("Llama-3.1-8B", &model, &error));
  CHECK(model.layers == 32 && model.state_bytes == 0);
  CHECK(model.bytes_per_token_bf16 == 32 * 2 * 8 * 128 * 2);
  REFUSED(WEFT_NOT_FOUND, weft_kv_find_model("Eliza", &model, &error));
  INVALID(weft_kv_find_model(NULL, &model, &error));
  INVALID(weft_kv_find_model("Llama-3.1-8B", NULL, &error));
}

/* Two source ranks together bring each byte of the destination's tokens once. */
static void plans_between_ranks(void) {
  weft_kv_layout* whole = llama(1, 0, 8, 64);
  weft_kv_cache* dst = NULL;
  CHECK(weft_kv_layout_group_count(whole) == 1 && weft_kv_layout_region_count(whole) == 1);
  CHECK(weft_kv_layout_region_bytes(whole, 0) == weft_kv_layout_bytes(whole));
  CHECK(weft_kv_layout_region_bytes(whole, 1) == 0);
  CHECK(weft_kv_layout_bytes(whole) == 8 * 64 * weft_kv_layout_bytes_per_token(whole));
  const weft_kv_base base = {.region = 3, .offset = 4096};
  OK(weft_kv_cache_create(whole, &base, 1, &dst, &error));

  const uint32_t from[] = {7, 3, 9, 4}, to[] = {5};
  const weft_kv_blocks src_blocks = {.ids = from, .count = 4}, dst_blocks = {.ids = to, .count = 1};
  const size_t bytes = weft_kv_layout_bytes(whole);
  unsigned char* written = calloc(bytes, 1);
  CHECK(written != NULL);
  uint64_t total = 0;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    weft_kv_layout* half = llama(2, rank, 10, 16);
    const weft_kv_layout* stages[] = {half};
    weft_kv_rank ranks[8] = {{9, 9, 9}};
    size_t count = 0;
    OK(weft_kv_source_ranks(stages, 1, whole, NULL, 0, 0, ranks, 8, &count, &error));
    CHECK(count == 2 && ranks[0].tp == 0 && ranks[1].tp == 1 && ranks[1].pp == 0);
    OK(weft_kv_source_ranks(stages, 1, whole, NULL, 0, 0, NULL, 0, &count, &error));
    CHECK(count == 2);
    weft_kv_cache* src = NULL;
    weft_kv_plan* plan = NULL;
    OK(weft_kv_cache_create(half, NULL, 0, &src, &error));
    OK(weft_kv_plan_create(src, &src_blocks, 1, dst, &dst_blocks, 1, (weft_kv_token_range){0, 64},
                           0, 0, &plan, &error));
    CHECK(weft_kv_plan_pieces(plan) >= weft_kv_plan_count(plan));
    const weft_kv_copy* copies = weft_kv_plan_copies(plan);
    for (size_t i = 0; i < weft_kv_plan_count(plan); ++i) {
      CHECK(copies[i].src_region == 0 && copies[i].dst_region == 3);
      CHECK(copies[i].src_offset + copies[i].length <= weft_kv_layout_bytes(half));
      CHECK(copies[i].dst_offset >= 4096 &&
            copies[i].dst_offset + copies[i].length <= 4096 + bytes);
      for (uint64_t at = 0; at < copies[i].length; ++at)
        CHECK(written[copies[i].dst_offset - 4096 + at]++ == 0);
    }
    total += weft_kv_plan_bytes(plan);
    weft_kv_plan_free(plan);
    weft_kv_cache_free(src);
    weft_kv_layout_free(half);
  }
  CHECK(total == 64 * weft_kv_layout_bytes_per_token(whole));
  free(written);
  weft_kv_cache_free(dst);
  weft_kv_layout_free(whole);
}

/* Attention in pages, and a state of one head for each of four: on two ranks, two heads on each. */
static void states_and_stages(void) {
  const uint32_t attention[] = {1}, state[] = {0, 2};
  const weft_kv_piece latent[] = {{WEFT_KV_FP8, 512}, {WEFT_KV_FP32, 4}, {WEFT_KV_BF16, 64}};
  const weft_kv_piece matrix = {WEFT_KV_FP32, 25};
  const weft_kv_field page = {.name = "latent", .pieces = latent, .piece_count = 3, .heads = 1};
  const weft_kv_field heads = {.name = "state", .pieces = &matrix, .piece_count = 1, .heads = 4};
  const weft_kv_group first = {.size = sizeof first,
                               .layers = attention,
                               .layer_count = 1,
                               .fields = &page,
                               .field_count = 1,
                               .blocks = 4,
                               .tokens_per_block = 64};
  const weft_kv_group second = {.size = sizeof second,
                                .layers = state,
                                .layer_count = 2,
                                .fields = &heads,
                                .field_count = 1,
                                .blocks = 3};
  const weft_kv_group* groups[] = {&first, &second};
  const weft_kv_parallel parallel = {.size = sizeof parallel, .tp_size = 2, .tp_rank = 1};
  weft_kv_layout *whole = NULL, *half = NULL;
  OK(weft_kv_layout_create(groups, 2, NULL, &whole, &error));
  OK(weft_kv_layout_create(groups, 2, &parallel, &half, &error));
  CHECK(weft_kv_layout_bytes_per_token(half) == 656);
  CHECK(weft_kv_layout_state_bytes(half) == 2 * 2 * 100);
  weft_kv_group_info info = {.size = sizeof info};
  OK(weft_kv_layout_group(half, 1, &info, &error));
  CHECK(info.layer_count == 2 && info.layers[1] == 2 && info.blocks == 3);
  CHECK(info.tokens_per_block == 0 && info.window == 0);
  INVALID(weft_kv_layout_group(half, 2, &info, &error));

  weft_kv_cache *src = NULL, *dst = NULL;
  weft_kv_plan* plan = NULL;
  OK(weft_kv_cache_create(whole, NULL, 0, &src, &error));
  OK(weft_kv_cache_create(half, NULL, 0, &dst, &error));
  const uint32_t pages[] = {2, 0}, slot = 1;
  const weft_kv_blocks blocks[] = {{.ids = pages, .count = 2}, {.ids = &slot, .count = 1}};
  const weft_kv_token_range tokens = {0, 100};
  OK(weft_kv_plan_create(src, blocks, 2, dst, blocks, 2, tokens, 0, 0, &plan, &error));
  CHECK(weft_kv_plan_bytes(plan) == 100 * 656 + 400);
  weft_kv_plan_free(plan);

  uint32_t begin = 9, count = 9;
  weft_kv_stage_layers(61, 4, 3, &begin, &count);
  CHECK(begin == 46 && count == 15);
  weft_kv_stage_layers(61, 4, 4, &begin, &count);
  CHECK(begin == 0 && count == 0);

  const weft_kv_hash hashes[] = {{{1}}, {{2}}};
  weft_kv_token_range missing = {0, 0};
  OK(weft_kv_missing(half, 0, hashes, 2, hashes, 1, 32, 70, &missing, &error));
  CHECK(missing.first == 32 && missing.count == 38);
  INVALID(weft_kv_missing(half, 2, hashes, 2, hashes, 1, 32, 70, &missing, &error));
  INVALID(weft_kv_missing(half, 0, NULL, 2, hashes, 1, 32, 70, &missing, &error));
  INVALID(weft_kv_missing(half, 0, hashes, 2, hashes, 1, 0, 70, &missing, &error));
  weft_kv_cache_free(src);
  weft_kv_cache_free(dst);
  weft_kv_layout_free(whole);
  weft_kv_layout_free(half);
}

static void configurations(void) {
  const char json[] =
      "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"head_dim\": 8,"
      " \"num_key_value_heads\": 2}";
  const weft_kv_layout_options options = {
      .size = sizeof options, .blocks = 4, .first_layer = 1, .layer_count = 2};
  weft_kv_layout* layout = NULL;
  OK(weft_kv_layout_of_config(json, sizeof json - 1, &options, &layout, &error));
  CHECK(weft_kv_layout_bytes_per_token(layout) == 2 * 2 * 2 * 8 * 2);
  weft_kv_layout_free(layout);
  layout = NULL;
  INVALID(weft_kv_layout_of_config(json, 5, &options, &layout, &error));
  INVALID(weft_kv_layout_of_config(NULL, 0, &options, &layout, &error));
  REFUSED(WEFT_UNSUPPORTED,
          weft_kv_layout_of_config("{\"model_type\": \"x\"}", 19, &options, &layout, &error));
  CHECK(layout == NULL);
}

static void refused_layouts(void) {
  const uint32_t layers[] = {0, 1};
  const weft_kv_piece vector = {WEFT_KV_BF16, 8}, strange = {8, 8};
  weft_kv_field field = {.name = "keys", .pieces = &vector, .piece_count = 1, .heads = 2};
  weft_kv_group group = {.size = sizeof group,
                         .layers = layers,
                         .layer_count = 2,
                         .fields = &field,
                         .field_count = 1,
                         .blocks = 4,
                         .tokens_per_block = 16};
  const weft_kv_group* groups[] = {&group, NULL};
  weft_kv_parallel parallel = {.size = sizeof parallel, .tp_size = 2, .tp_rank = 2};
  weft_kv_layout* layout = NULL;
  INVALID(weft_kv_layout_create(NULL, 1, NULL, &layout, &error));
  INVALID(weft_kv_layout_create(groups, 1, NULL, NULL, &error));
  INVALID(weft_kv_layout_create(groups, 2, NULL, &layout, &error));
  INVALID(weft_kv_layout_create(groups, 1, &parallel, &layout, &error));
  parallel.size = 3;
  INVALID(weft_kv_layout_create(groups, 1, &parallel, &layout, &error));
  group.placement = 2;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.placement = WEFT_KV_FUSED;
  group.regions = WEFT_KV_REGION_PER_FIELD; /* needs split */
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.regions = -1;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.regions = WEFT_KV_REGION_ONE;
  group.order = 2;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.order = WEFT_KV_BLOCK_MAJOR;
  group.head_order = 2;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.head_order = WEFT_KV_HND;
  group.layers = NULL;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.layers = layers;
  field.pieces = &strange;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  field.pieces = NULL;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  field.pieces = &vector;
  field.name = NULL;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.fields = NULL;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  group.size = 3;
  INVALID(weft_kv_layout_create(groups, 1, NULL, &layout, &error));

  weft_kv_layout_options options = {.size = sizeof options, .blocks = 4};
  INVALID(weft_kv_layout_of_model(NULL, &options, &layout, &error));
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", NULL, &layout, &error));
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, NULL, &error));
  REFUSED(WEFT_NOT_FOUND, weft_kv_layout_of_model("Eliza", &options, &layout, &error));
  options.dtype = 8;
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, &layout, &error));
  options.dtype = WEFT_KV_FP8;
  options.placement = 2;
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, &layout, &error));
  options.placement = WEFT_KV_FUSED;
  options.first_layer = 3;
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, &layout, &error));
  CHECK(layout == NULL);
}

static void refused_plans(void) {
  weft_kv_layout* layout = llama(1, 0, 8, 16);
  const weft_kv_layout_options options = {.size = sizeof options, .blocks = 8};
  weft_kv_layout* stranger = NULL;
  OK(weft_kv_layout_of_model("DeepSeek-V3", &options, &stranger, &error));
  weft_kv_cache *cache = NULL, *strange = NULL, *made = NULL;
  OK(weft_kv_cache_create(layout, NULL, 0, &cache, &error));
  OK(weft_kv_cache_create(stranger, NULL, 0, &strange, &error));
  INVALID(weft_kv_cache_create(NULL, NULL, 0, &made, &error));
  INVALID(weft_kv_cache_create(layout, NULL, 1, &made, &error));
  INVALID(weft_kv_cache_create(layout, NULL, 0, NULL, &error));
  const weft_kv_base bases[2] = {{0, 0}};
  INVALID(weft_kv_cache_create(layout, bases, 2, &made, &error));

  const uint32_t block = 0, beyond = 8;
  const weft_kv_blocks good = {.ids = &block, .count = 1};
  const weft_kv_blocks far = {.ids = &beyond, .count = 1}, lost = {.ids = NULL, .count = 1};
  const weft_kv_token_range all = {0, 16}, more = {0, 17};
  weft_kv_plan* plan = NULL;
  INVALID(weft_kv_plan_create(NULL, &good, 1, cache, &good, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, NULL, &good, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, NULL, 1, cache, &good, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, NULL, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &good, 1, all, 0, 0, NULL, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, strange, &good, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &good, 1, all, 32, 3, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &good, 1, all, 1, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, NULL, 0, cache, NULL, 0, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &good, 1, more, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &far, 1, all, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, &good, 1, cache, &lost, 1, all, 0, 0, &plan, &error));
  const weft_kv_layout *stages[] = {layout}, *twice[] = {layout, layout}, *none[] = {NULL};
  weft_kv_rank ranks[1];
  size_t count = 0;
  INVALID(weft_kv_source_ranks(NULL, 1, layout, NULL, 0, 0, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(none, 1, layout, NULL, 0, 0, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(twice, 2, layout, NULL, 0, 0, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(stages, 1, NULL, NULL, 0, 0, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(stages, 1, layout, NULL, 0, 0, NULL, 1, &count, &error));
  INVALID(weft_kv_source_ranks(stages, 1, layout, NULL, 0, 0, ranks, 1, NULL, &error));
  INVALID(weft_kv_source_ranks(stages, 1, stranger, NULL, 0, 0, ranks, 1, &count, &error));
  CHECK(plan == NULL && made == NULL);
  weft_kv_cache_free(cache);
  weft_kv_cache_free(strange);
  weft_kv_layout_free(layout);
  weft_kv_layout_free(stranger);
}

int main(void) {
  models();
  plans_between_ranks();
  states_and_stages();
  configurations();
  refused_layouts();
  refused_plans();
  return 0;
}
