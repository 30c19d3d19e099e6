/* Hands memory from one process to another: `handover decode ADDRESS`, `handover prefill ADDRESS`.
   Decode grants its cache and waits for the signal; prefill writes two blocks and raises it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

enum { cache_bytes = 64 << 20, block_bytes = 65536, block_count = 2 };
enum { blocks_are_there = 7 };

static const int64_t patience = INT64_C(30) * 1000000000;
static const weft_pair blocks[block_count] = {
    {.local = 0, .remote = 4096, .length = block_bytes},
    {.local = 131072, .remote = 1 << 20, .length = block_bytes}};

static void count_right_bytes(const weft_segment* cache) {
  const unsigned char* data = weft_segment_data(cache);
  for (size_t i = 0; i < block_count; ++i) {
    size_t right = 0;
    for (size_t at = 0; at < block_bytes; ++at) right += data[blocks[i].remote + at] == 1;
    printf("%zu of %d bytes are right\n", right, block_bytes);
  }
}

static weft_code decode(const char* address, weft_error** error) {
  weft_config* config = NULL;
  weft_engine* engine = NULL;
  weft_segment* cache = NULL;
  weft_grant* grant = NULL;
  weft_peer* peer = NULL;
  weft_expectation* ready = NULL;

  weft_code code = weft_config_create(&config, error);
  if (!code) code = weft_config_set(config, "listen", address, error);
  if (!code) code = weft_engine_open(config, &engine, error);
  if (!code) code = weft_engine_add_own(engine, cache_bytes, &cache, error);
  if (!code)
    code =
        weft_segment_grant(cache, NULL, 0, WEFT_RIGHT_WRITE, 0, WEFT_KEYS_AUTOMATIC, &grant, error);
  if (!code) code = weft_engine_publish(engine, "kv", grant, error);
  if (!code) code = weft_engine_accept(engine, patience, &peer, error);
  if (!code) code = weft_peer_expect(peer, blocks_are_there, 1, NULL, &ready, error);
  if (!code) code = weft_expectation_wait(ready, patience, error);
  if (!code) count_right_bytes(cache);
  if (!code) code = weft_segment_release(cache, patience, error); /* no peer can write any more */

  weft_expectation_free(ready);
  weft_peer_free(peer);
  weft_grant_free(grant);
  weft_segment_free(cache);
  weft_engine_free(engine);
  weft_config_free(config);
  return code;
}

static weft_code prefill(const char* address, weft_error** error) {
  weft_engine* engine = NULL;
  weft_segment* cache = NULL;
  weft_peer* peer = NULL;
  weft_remote* remote = NULL;
  weft_transfer* transfer = NULL;
  const weft_transfer_options options = {
      .size = sizeof options, .signal = true, .signal_id = blocks_are_there};

  weft_code code = weft_engine_open(NULL, &engine, error);
  if (!code) code = weft_engine_add_own(engine, cache_bytes, &cache, error);
  if (!code) memset(weft_segment_data(cache), 1, cache_bytes);
  if (!code) code = weft_engine_connect(engine, address, patience, &peer, error);
  if (!code) code = weft_peer_lookup(peer, "kv", patience, &remote, error);
  if (!code)
    code =
        weft_engine_write(engine, cache, remote, blocks, block_count, &options, &transfer, error);
  if (!code) code = weft_transfer_wait(transfer, patience, error);
  if (!code) printf("%d bytes written\n", block_count * block_bytes);

  weft_transfer_free(transfer);
  weft_remote_free(remote);
  weft_peer_free(peer);
  weft_segment_free(cache);
  weft_engine_free(engine);
  return code;
}

int main(int argc, char** argv) {
  weft_prepare_process();
  weft_error* error = NULL;
  weft_code code = WEFT_INVALID_ARGUMENT;
  if (argc == 3 && strcmp(argv[1], "decode") == 0) {
    code = decode(argv[2], &error);
  } else if (argc == 3 && strcmp(argv[1], "prefill") == 0) {
    code = prefill(argv[2], &error);
  } else {
    fprintf(stderr, "usage: handover decode|prefill ADDRESS\n");
    return 2;
  }
  if (code) fprintf(stderr, "%s\n", error ? weft_error_string(error) : weft_code_name(code));
  weft_error_free(error);
  return code ? 1 : 0;
}
