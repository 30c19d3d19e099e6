/* Prefill in one process and decode in another: the blocks of a request move between caches of
   different layouts by a plan, layer by layer, with a signal each. The argument is the provider. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { layers = 4, heads = 2, head_bytes = 32, tokens = 75, parts = 2 };
enum { src_blocks = 16, src_tokens = 16, dst_blocks = 4, dst_tokens = 64 };

static const uint32_t from_blocks[] = {7, 2, 9, 12, 0}, to_blocks[] = {3, 1};

static weft_kv_layout* layout_of(uint32_t blocks, uint32_t tokens_per_block, int32_t order) {
  const uint32_t numbers[layers] = {0, 1, 2, 3};
  const weft_kv_piece vector = {.type = WEFT_KV_FP8, .elements = head_bytes};
  const weft_kv_field fields[parts] = {
      {.name = "keys", .pieces = &vector, .piece_count = 1, .heads = heads},
      {.name = "values", .pieces = &vector, .piece_count = 1, .heads = heads}};
  const weft_kv_group group = {.size = sizeof group,
                               .layers = numbers,
                               .layer_count = layers,
                               .fields = fields,
                               .field_count = parts,
                               .blocks = blocks,
                               .tokens_per_block = tokens_per_block,
                               .placement = WEFT_KV_SPLIT,
                               .order = order};
  const weft_kv_group* groups[] = {&group};
  weft_kv_layout* layout = NULL;
  OK(weft_kv_layout_create(groups, 1, NULL, &layout, &error));
  return layout;
}

/* Where a token's vectors lie, worked out here from the documented orders: layer-major is
   [layers][parts][blocks][tokens], block-major is [parts][blocks][layers][tokens]. */
static size_t src_offset(size_t layer, size_t part, size_t token) {
  const size_t block = from_blocks[token / src_tokens];
  return (((layer * parts + part) * src_blocks + block) * src_tokens + token % src_tokens) * heads *
         head_bytes;
}
static size_t dst_offset(size_t layer, size_t part, size_t token) {
  const size_t block = to_blocks[token / dst_tokens];
  return (((part * dst_blocks + block) * layers + layer) * dst_tokens + token % dst_tokens) *
         heads * head_bytes;
}

static void decode(const char* provider, int to_parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  weft_engine* engine = open_engine(provider, "automatic", "threads");
  weft_kv_layout* layout = layout_of(dst_blocks, dst_tokens, WEFT_KV_BLOCK_MAJOR);
  const size_t bytes = weft_kv_layout_bytes(layout);
  weft_segment* cache = NULL;
  weft_grant* grant = NULL;
  weft_peer* prefill = NULL;
  OK(weft_engine_add_shared(engine, bytes, &cache, &error));
  CHECK(weft_segment_fd(cache) >= 0);
  OK(weft_segment_grant(cache, NULL, 0, WEFT_RIGHT_READ_WRITE, 0, WEFT_KEYS_AUTOMATIC, &grant,
                        &error));
  OK(weft_engine_publish(engine, "cache", grant, &error));
  const char* address = weft_engine_address(engine);
  CHECK(write(to_parent, address, strlen(address) + 1) == (ssize_t)strlen(address) + 1);
  OK(weft_engine_accept(engine, patience, &prefill, &error));

  unsigned char* expected = calloc(bytes, 1);
  CHECK(expected != NULL);
  for (size_t layer = 0; layer < layers; ++layer) {
    weft_expectation* there = NULL;
    OK(weft_peer_expect(prefill, 100 + layer, 1, NULL, &there, &error));
    OK(weft_expectation_wait(there, patience, &error));
    weft_expectation_free(there);
    for (size_t part = 0; part < parts; ++part)
      for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < heads * head_bytes; ++i)
          expected[dst_offset(layer, part, token) + i] =
              pattern(src_offset(layer, part, token) + i, 3);
    const unsigned char* data = weft_segment_data(cache);
    for (size_t part = 0; part < parts; ++part)
      for (size_t token = 0; token < tokens; ++token) {
        const size_t at = dst_offset(layer, part, token);
        CHECK(memcmp(data + at, expected + at, heads * head_bytes) == 0);
      }
  }
  /* All of it, and nothing besides. */
  CHECK(memcmp(weft_segment_data(cache), expected, bytes) == 0);
  OK(weft_peer_send(prefill, 1, "checked", 7, patience, &error));
  weft_receive* last = NULL;
  OK(weft_peer_recv(prefill, 2, UINT64_MAX, patience, &last, &error));
  weft_receive_free(last);
  free(expected);
  OK(weft_engine_close(engine, patience, &error));
  weft_grant_free(grant);
  weft_segment_free(cache);
  weft_peer_free(prefill);
  weft_kv_layout_free(layout);
  weft_engine_free(engine);
}

static void send_layers(weft_engine* engine, weft_segment* segment, weft_remote* remote,
                        const weft_kv_layout* src_layout) {
  weft_kv_layout* dst_layout = layout_of(dst_blocks, dst_tokens, WEFT_KV_BLOCK_MAJOR);
  weft_kv_cache *src = NULL, *dst = NULL;
  OK(weft_kv_cache_create(src_layout, NULL, 0, &src, &error));
  OK(weft_kv_cache_create(dst_layout, NULL, 0, &dst, &error));
  const weft_kv_blocks from = {.ids = from_blocks, .count = COUNT_OF(from_blocks)};
  const weft_kv_blocks to = {.ids = to_blocks, .count = COUNT_OF(to_blocks)};
  const weft_kv_token_range all = {0, tokens};
  for (uint32_t layer = 0; layer < layers; ++layer) {
    weft_kv_plan* plan = NULL;
    OK(weft_kv_plan_create(src, &from, 1, dst, &to, 1, all, layer, 1, &plan, &error));
    CHECK(weft_kv_plan_bytes(plan) == (uint64_t)tokens * parts * heads * head_bytes);
    const size_t count = weft_kv_plan_count(plan);
    const weft_kv_copy* copies = weft_kv_plan_copies(plan);
    weft_pair* pairs = calloc(count, sizeof *pairs);
    CHECK(pairs != NULL);
    for (size_t i = 0; i < count; ++i)
      pairs[i] = (weft_pair){.local = copies[i].src_offset,
                             .remote = copies[i].dst_offset,
                             .length = copies[i].length};
    const weft_transfer_options options = {
        .size = sizeof options, .signal = true, .signal_id = 100 + layer};
    weft_transfer* transfer = NULL;
    OK(weft_engine_write(engine, segment, remote, pairs, count, &options, &transfer, &error));
    OK(weft_transfer_wait(transfer, patience, &error));
    weft_transfer_free(transfer);
    free(pairs);
    weft_kv_plan_free(plan);
  }
  weft_kv_cache_free(src);
  weft_kv_cache_free(dst);
  weft_kv_layout_free(dst_layout);
}

/* A child that finds its parent's engine gets errors, and may free it. */
static void check_fork(weft_engine* engine) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    weft_peer* peer = NULL;
    REFUSED(WEFT_FORKED, weft_engine_accept(engine, patience, &peer, &error));
    REFUSED(WEFT_FORKED, weft_engine_close(engine, patience, &error));
    weft_engine_free(engine);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void prefill(const char* provider, const char* address) {
  weft_engine* engine = open_engine(provider, "automatic", "threads");
  weft_kv_layout* layout = layout_of(src_blocks, src_tokens, WEFT_KV_LAYER_MAJOR);
  weft_segment* cache = NULL;
  weft_peer* decode = NULL;
  weft_remote* remote = NULL;
  OK(weft_engine_add_own(engine, weft_kv_layout_bytes(layout), &cache, &error));
  fill_pattern(weft_segment_data(cache), weft_kv_layout_bytes(layout), 3);
  OK(weft_engine_connect(engine, address, patience, &decode, &error));
  CHECK(weft_peer_same_host(decode));
  OK(weft_peer_lookup(decode, "cache", patience, &remote, &error));
  send_layers(engine, cache, remote, layout);

  weft_receive* answer = NULL;
  OK(weft_peer_recv(decode, 1, UINT64_MAX, patience, &answer, &error));
  CHECK(weft_receive_bytes(answer) == 7);
  weft_receive_free(answer);
  check_fork(engine);
  OK(weft_peer_send(decode, 2, NULL, 0, patience, &error));
  OK(weft_engine_close(engine, patience, &error));
  weft_remote_free(remote);
  weft_peer_free(decode);
  weft_segment_free(cache);
  weft_kv_layout_free(layout);
  weft_engine_free(engine);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    decode(argv[1], ends[1]);
    return 0;
  }
  close(ends[1]);
  char address[256] = "";
  CHECK(read(ends[0], address, sizeof address - 1) > 0);
  prefill(argv[1], address);
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
