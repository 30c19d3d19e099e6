/* KV layouts and plans by the C API: models, sizes, plans between ranks, refusals. */
#include "check.h"

#define INVALID(call) REFUSED(WEFT_INVALID_ARGUMENT, call)

static weft_kv_layout* llama(uint32_t tp_size, uint32_t tp_rank, uint32_t blocks,
                             uint32_t tokens_per_block) {
  const weft_kv_layout_options options = {.size = sizeof options,
                                          .tokens_per_block = tokens_per_block,
                                          .blocks = blocks,
                                          .tp_size = tp_size,
                                          .tp_rank = tp_rank};
  weft_kv_layout* layout = NULL;
  OK(weft_kv_layout_of_model("llama-3.1-8b", &options, &layout, &error));
  return layout;
}

static void models(void) {
  CHECK(weft_kv_model_count() >= 9);
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
  CHECK(model.layers == 32 && model.kv_heads == 8 && model.head_size == 128);
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
  const weft_kv_blocks blocks = {
      .src = from, .src_count = 4, .dst = to, .dst_count = 1, .tokens = WEFT_KV_ALL_TOKENS};
  const size_t bytes = weft_kv_layout_bytes(whole);
  unsigned char* written = calloc(bytes, 1);
  CHECK(written != NULL);
  uint64_t total = 0;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    weft_kv_layout* half = llama(2, rank, 10, 16);
    uint32_t ranks[8] = {9};
    size_t count = 0;
    OK(weft_kv_source_ranks(half, whole, ranks, 8, &count, &error));
    CHECK(count == 2 && ranks[0] == 0 && ranks[1] == 1);
    OK(weft_kv_source_ranks(half, whole, NULL, 0, &count, &error));
    CHECK(count == 2);
    weft_kv_cache* src = NULL;
    weft_kv_plan* plan = NULL;
    OK(weft_kv_cache_create(half, NULL, 0, &src, &error));
    OK(weft_kv_plan_create(src, dst, &blocks, 1, 0, 0, &plan, &error));
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

static void refused_layouts(void) {
  const uint32_t layers[] = {0, 1};
  weft_kv_group group = {.size = sizeof group,
                         .layers = layers,
                         .layer_count = 2,
                         .blocks = 4,
                         .tokens_per_block = 16,
                         .kv_heads = 2,
                         .head_size = 8,
                         .element_size = 2};
  const weft_kv_group* groups[] = {&group, NULL};
  weft_kv_layout* layout = NULL;
  INVALID(weft_kv_layout_create(NULL, 1, 1, 0, &layout, &error));
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, NULL, &error));
  INVALID(weft_kv_layout_create(groups, 2, 1, 0, &layout, &error));
  INVALID(weft_kv_layout_create(groups, 1, 9, 0, &layout, &error));
  INVALID(weft_kv_layout_create(groups, 1, 2, 2, &layout, &error));
  group.parts = 3;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.parts = WEFT_KV_FUSED;
  group.regions = WEFT_KV_REGION_PER_PART; /* needs split */
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.regions = -1;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.regions = WEFT_KV_REGION_ONE;
  group.order = 2;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.order = WEFT_KV_BLOCK_MAJOR;
  group.head_order = 2;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.head_order = WEFT_KV_HND;
  group.layers = NULL;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));
  group.layers = layers;
  group.size = 3;
  INVALID(weft_kv_layout_create(groups, 1, 1, 0, &layout, &error));

  weft_kv_layout_options options = {.size = sizeof options, .blocks = 4};
  INVALID(weft_kv_layout_of_model(NULL, &options, &layout, &error));
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", NULL, &layout, &error));
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, NULL, &error));
  REFUSED(WEFT_NOT_FOUND, weft_kv_layout_of_model("Eliza", &options, &layout, &error));
  options.dtype = 2;
  INVALID(weft_kv_layout_of_model("Llama-3.1-8B", &options, &layout, &error));
  options.dtype = WEFT_KV_FP8;
  options.parts = WEFT_KV_LATENT; /* the model says that, not the caller */
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
  weft_kv_blocks blocks = {
      .src = &block, .src_count = 1, .dst = &block, .dst_count = 1, .tokens = 16};
  weft_kv_plan* plan = NULL;
  INVALID(weft_kv_plan_create(NULL, cache, &blocks, 1, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, NULL, &blocks, 1, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, cache, NULL, 1, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 0, 0, NULL, &error));
  INVALID(weft_kv_plan_create(cache, strange, &blocks, 1, 0, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 30, 3, &plan, &error));
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 1, 0, &plan, &error));
  INVALID(weft_kv_plan_create(cache, cache, NULL, 0, 0, 0, &plan, &error));
  blocks.tokens = 17;
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 0, 0, &plan, &error));
  blocks.tokens = 16;
  blocks.dst = &beyond;
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 0, 0, &plan, &error));
  blocks.dst = NULL;
  INVALID(weft_kv_plan_create(cache, cache, &blocks, 1, 0, 0, &plan, &error));
  uint32_t ranks[1];
  size_t count = 0;
  INVALID(weft_kv_source_ranks(NULL, layout, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(layout, NULL, ranks, 1, &count, &error));
  INVALID(weft_kv_source_ranks(layout, layout, NULL, 1, &count, &error));
  INVALID(weft_kv_source_ranks(layout, layout, ranks, 1, NULL, &error));
  INVALID(weft_kv_source_ranks(layout, stranger, ranks, 1, &count, &error));
  CHECK(plan == NULL && made == NULL);
  weft_kv_cache_free(cache);
  weft_kv_cache_free(strange);
  weft_kv_layout_free(layout);
  weft_kv_layout_free(stranger);
}

int main(void) {
  models();
  plans_between_ranks();
  refused_layouts();
  refused_plans();
  return 0;
}
