/* Two engines in one process: everything that the C API moves, and how it tells. The arguments are
   the provider and the transport. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { page = 4096 + 24, pages = 64, slot = 8192, cache_bytes = pages * slot };

struct pair_of_engines {
  weft_engine *writer, *reader;
  weft_peer *to_reader, *to_writer;
  unsigned char* memory; /* adopted by the writer */
  weft_segment *source, *cache;
  weft_grant* grant;
  weft_remote* remote;
};

struct endings {
  atomic_int calls, last_state;
  atomic_ullong last_cookie;
  atomic_bool with_error;
};

static void on_transfer(void* context, uint64_t cookie, int32_t state, const weft_error* error) {
  struct endings* endings = context;
  endings->last_state = state;
  endings->last_cookie = cookie;
  endings->with_error = error != NULL && strlen(weft_error_string(error)) > 0;
  ++endings->calls;
}

static void on_arrival(void* context, uint64_t cookie, const weft_error* error) {
  on_transfer(context, cookie, WEFT_STATE_DONE, error);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void await_calls(const struct endings* endings, int calls) {
  const int64_t end = now_ns() + patience;
  while (endings->calls < calls && now_ns() < end) sched_yield();
  CHECK(endings->calls == calls);
}

static void meet(struct pair_of_engines* both, const char* provider) {
  CHECK(strlen(weft_engine_name(both->writer)) > 0);
  CHECK(strchr(weft_engine_address(both->reader), ':') != NULL);
  OK(weft_engine_connect(both->writer, weft_engine_address(both->reader), patience,
                         &both->to_reader, &error));
  OK(weft_engine_accept(both->reader, patience, &both->to_writer, &error));

  CHECK(strcmp(weft_peer_name(both->to_reader), weft_engine_name(both->reader)) == 0);
  CHECK(strcmp(weft_peer_name(both->to_writer), weft_engine_name(both->writer)) == 0);
  CHECK(strcmp(weft_peer_address(both->to_reader), weft_engine_address(both->reader)) == 0);
  CHECK(weft_peer_incarnation(both->to_reader) != weft_peer_incarnation(both->to_writer));
  CHECK(weft_peer_up(both->to_reader) && weft_peer_same_host(both->to_reader));
  OK(weft_peer_check(both->to_reader, &error));
  CHECK(strlen(weft_peer_route_reason(both->to_reader)) > 0);
  CHECK(strlen(weft_peer_fallback(both->to_reader)) == 0);
  CHECK(weft_peer_rail_count(both->to_reader) >= 1);
  CHECK(strncmp(weft_peer_rail(both->to_reader, 0), provider, strlen(provider)) == 0);
  CHECK(weft_peer_rail(both->to_reader, 1000) == NULL);

  size_t count = 0;
  OK(weft_engine_peers(both->writer, NULL, 0, &count, &error));
  CHECK(count == 1);
  weft_peer* listed[4] = {NULL};
  OK(weft_engine_peers(both->writer, listed, 4, &count, &error));
  CHECK(count == 1 && listed[1] == NULL);
  CHECK(weft_peer_incarnation(listed[0]) == weft_peer_incarnation(both->to_reader));
  weft_peer_free(listed[0]);
}

static void share_memory(struct pair_of_engines* both) {
  both->memory = malloc(2 * cache_bytes);
  CHECK(both->memory != NULL);
  fill_pattern(both->memory, cache_bytes, 1);
  memset(both->memory + cache_bytes, 0, cache_bytes);
  OK(weft_engine_adopt(both->writer, both->memory, 2 * cache_bytes, &both->source, &error));
  OK(weft_engine_add_own(both->reader, cache_bytes, &both->cache, &error));
  CHECK(weft_segment_data(both->source) == both->memory);
  CHECK(weft_segment_size(both->cache) == cache_bytes && weft_segment_fd(both->cache) == -1);
  weft_place place;
  OK(weft_segment_place(both->cache, &place, &error));
  CHECK(place.kind == WEFT_MEMORY_HOST && place.device == -1);

  OK(weft_segment_grant(both->cache, NULL, 0, WEFT_RIGHT_READ_WRITE, 0, WEFT_KEYS_AUTOMATIC,
                        &both->grant, &error));
  CHECK(weft_grant_lease_id(both->grant) != 0);
  OK(weft_engine_publish(both->reader, "cache", both->grant, &error));
  OK(weft_peer_lookup(both->to_reader, "cache", patience, &both->remote, &error));
  CHECK(strcmp(weft_remote_peer(both->remote), weft_engine_name(both->reader)) == 0);
  CHECK(weft_remote_segment_size(both->remote) == cache_bytes);
  CHECK(weft_remote_rights(both->remote) == WEFT_RIGHT_READ_WRITE);
  CHECK(weft_remote_range_count(both->remote) == 1);
  weft_range range;
  OK(weft_remote_range(both->remote, 0, &range, &error));
  CHECK(range.offset == 0 && range.length == cache_bytes);
  REFUSED(WEFT_INVALID_ARGUMENT, weft_remote_range(both->remote, 1, &range, &error));
  OK(weft_remote_place(both->remote, &place, &error));
  CHECK(place.kind == WEFT_MEMORY_HOST);

  /* The blob by the application's own channel means the same. */
  weft_remote* imported = NULL;
  OK(weft_engine_import(both->writer, weft_grant_blob(both->grant),
                        weft_grant_blob_size(both->grant), &imported, &error));
  CHECK(weft_remote_segment_size(imported) == cache_bytes);
  weft_remote_free(imported);
}

/* Page i of the source goes into slot (i * 37) % pages of the cache, which is a permutation. */
static size_t slot_of(size_t i) {
  return i * 37 % pages;
}

static void check_cache(const struct pair_of_engines* both, size_t step) {
  const unsigned char* cache = weft_segment_data(both->cache);
  for (size_t i = 0; i < pages; ++i)
    for (size_t at = 0; at < slot; ++at) {
      const bool written = i % step == 0 && at < page;
      const unsigned char wanted = written ? both->memory[i * page + at] : 0;
      CHECK(cache[slot_of(i) * slot + at] == wanted);
    }
}

static void drain_events(weft_engine* engine, int32_t kind, uint64_t cookie) {
  const int64_t end = now_ns() + patience;
  for (;;) {
    struct pollfd ready = {.fd = weft_engine_event_fd(engine), .events = POLLIN};
    CHECK(now_ns() < end && poll(&ready, 1, (int)(patience / 1000000)) == 1);
    weft_event events[3];
    size_t count = 0;
    OK(weft_engine_poll(engine, events, COUNT_OF(events), &count, &error));
    bool found = false;
    for (size_t i = 0; i < count; ++i) {
      CHECK(events[i].error == NULL && strlen(events[i].peer) > 0);
      found = found || (events[i].kind == kind && events[i].cookie == cookie);
    }
    if (found) return;
  }
}

static void prepared_writes(struct pair_of_engines* both) {
  weft_pair pairs[pages];
  for (size_t i = 0; i < pages; ++i)
    pairs[i] = (weft_pair){.local = i * page, .remote = slot_of(i) * slot, .length = page};
  weft_prepared* prepared = NULL;
  OK(weft_engine_prepare_pairs(both->writer, both->source, both->remote, WEFT_WRITE, pairs, pages,
                               &prepared, &error));
  CHECK(weft_prepared_size(prepared) == pages);
  CHECK(weft_prepared_bytes(prepared) == (uint64_t)pages * page);

  struct endings arrived = {0}, ended = {0};
  const weft_notify_options notify = {
      .size = sizeof notify, .cookie = 5, .event = true, .on_end = on_arrival, .context = &arrived};
  weft_expectation* expectation = NULL;
  OK(weft_peer_expect(both->to_writer, 7, 1, &notify, &expectation, &error));
  CHECK(!weft_expectation_ready(expectation));
  REFUSED(WEFT_TIMED_OUT, weft_expectation_wait(expectation, 0, &error));

  uint32_t picks[pages / 2];
  for (uint32_t i = 0; i < pages / 2; ++i) picks[i] = 2 * i;
  const weft_transfer_options options = {.size = sizeof options,
                                         .timeout_ns = patience,
                                         .cookie = 42,
                                         .event = true,
                                         .signal = true,
                                         .signal_id = 7,
                                         .signal_data = "even",
                                         .signal_bytes = 4,
                                         .on_end = on_transfer,
                                         .context = &ended};
  weft_transfer* transfer = NULL;
  OK(weft_engine_submit(both->writer, prepared, picks, COUNT_OF(picks), &options, &transfer,
                        &error));
  OK(weft_expectation_wait(expectation, patience, &error));
  check_cache(both, 2); /* the signal comes after the data */
  OK(weft_expectation_wait(expectation, 0, &error));
  CHECK(weft_expectation_ready(expectation) && weft_expectation_payload_count(expectation) == 1);
  size_t bytes = 0;
  const void* payload = weft_expectation_payload(expectation, 0, &bytes);
  CHECK(bytes == 4 && memcmp(payload, "even", 4) == 0);
  CHECK(weft_expectation_payload(expectation, 1, &bytes) == NULL && bytes == 0);
  weft_expectation_free(expectation);

  OK(weft_transfer_wait_quiescent(transfer, patience, &error));
  CHECK(weft_transfer_state(transfer) == WEFT_STATE_DONE && weft_transfer_quiescent(transfer));
  await_calls(&ended, 1);
  await_calls(&arrived, 1);
  CHECK(ended.last_state == WEFT_STATE_DONE && ended.last_cookie == 42 && !ended.with_error);
  CHECK(arrived.last_cookie == 5 && !arrived.with_error);
  drain_events(both->writer, WEFT_EVENT_TRANSFER_ENDED, 42);
  drain_events(both->reader, WEFT_EVENT_SIGNALS_ARRIVED, 5);

  weft_report report = {.size = sizeof report};
  OK(weft_transfer_report(transfer, &report, &error));
  CHECK(report.state == WEFT_STATE_DONE && report.ranges == pages / 2);
  CHECK(report.bytes == (uint64_t)pages / 2 * page && report.bytes_done == report.bytes);
  CHECK(report.operations >= 1 && report.elapsed_ns > 0 && report.rail_count >= 1);
  uint64_t shared = 0;
  for (size_t i = 0; i < report.rail_count; ++i) {
    weft_rail_share share;
    OK(weft_transfer_rail_share(transfer, i, &share, &error));
    CHECK(strchr(share.rail, ':') != NULL && share.operations > 0);
    shared += share.bytes;
  }
  CHECK(shared == report.bytes);
  weft_rail_share share;
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_transfer_rail_share(transfer, report.rail_count, &share, &error));
  CHECK(report.copied_count >= 1 && report.amplification >= 1 && report.retries == 0);
  CHECK(report.queued_ns >= 0 && report.carried_ns > 0);
  weft_copied copied;
  for (size_t i = 0; i < report.copied_count; ++i) {
    OK(weft_transfer_copied(transfer, i, &copied, &error));
    CHECK(copied.known == WEFT_COPIED_UNKNOWN || copied.bytes >= report.bytes);
    CHECK(copied.by != WEFT_MOVER_NIC);
  }
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_transfer_copied(transfer, report.copied_count, &copied, &error));
  weft_transfer_free(transfer);

  OK(weft_engine_submit_all(both->writer, prepared, NULL, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  check_cache(both, 1);
  weft_transfer_free(transfer);
  weft_prepared_free(prepared);
}

/* Over shared memory there would be nothing to gain. */
static void open_rail_again(struct pair_of_engines* both) {
  const char* rail = weft_peer_rail(both->to_reader, 0);
  const weft_code expected = strncmp(rail, "shm", 3) == 0 ? WEFT_UNSUPPORTED : WEFT_OK;
  CHECK(weft_engine_reopen(both->writer, rail, patience, NULL) == expected);
  CHECK(weft_engine_reopen(both->reader, rail, patience, NULL) == expected);
}

static void make_contact(struct pair_of_engines* both) {
  weft_transfer* transfer = NULL;
  OK(weft_engine_warm(both->writer, both->source, both->remote, NULL, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
}

static void read_back(struct pair_of_engines* both) {
  weft_pair pairs[pages];
  for (size_t i = 0; i < pages; ++i)
    pairs[i] =
        (weft_pair){.local = cache_bytes + i * page, .remote = slot_of(i) * slot, .length = page};
  weft_transfer* transfer = NULL;
  OK(weft_engine_read(both->writer, both->source, both->remote, pairs, pages, NULL, &transfer,
                      &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
  CHECK(memcmp(both->memory + cache_bytes, both->memory, (size_t)pages * page) == 0);
}

static void other_forms(struct pair_of_engines* both) {
  unsigned char* cache = weft_segment_data(both->cache);
  weft_prepared* prepared = NULL;
  weft_transfer* transfer = NULL;

  memset(cache, 0, cache_bytes);
  const weft_strided rows = {.first = {.local = 3, .remote = 5, .length = 100},
                             .count = 10,
                             .local_stride = 1000,
                             .remote_stride = 2000};
  OK(weft_engine_prepare_strided(both->writer, both->source, both->remote, WEFT_WRITE, &rows,
                                 &prepared, &error));
  CHECK(weft_prepared_size(prepared) == 10 && weft_prepared_bytes(prepared) == 1000);
  OK(weft_engine_submit_all(both->writer, prepared, NULL, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  for (size_t at = 0; at < cache_bytes; ++at) {
    const size_t row = at >= 5 ? (at - 5) / 2000 : 10, column = (at - 5) % 2000;
    CHECK(cache[at] == (row < 10 && column < 100 ? both->memory[3 + row * 1000 + column] : 0));
  }
  weft_transfer_free(transfer);
  weft_prepared_free(prepared);

  memset(cache, 0, cache_bytes);
  const uint32_t here[] = {9, 2, 30}, there[] = {1, 0, 7};
  const weft_paged paged = {.page_bytes = 512,
                            .local_base = 1,
                            .local_stride = 512,
                            .remote_base = 64,
                            .remote_stride = 600,
                            .local_pages = here,
                            .remote_pages = there,
                            .count = 3};
  OK(weft_engine_prepare_paged(both->writer, both->source, both->remote, WEFT_WRITE, &paged,
                               &prepared, &error));
  OK(weft_engine_submit_all(both->writer, prepared, NULL, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  for (size_t i = 0; i < 3; ++i)
    CHECK(memcmp(cache + 64 + there[i] * 600, both->memory + 1 + here[i] * 512, 512) == 0);
  CHECK(cache[63] == 0 && cache[64 + 512] == 0 && cache[64 + 2 * 600] == 0);
  weft_transfer_free(transfer);
  weft_prepared_free(prepared);
}

static void signals_and_messages(struct pair_of_engines* both) {
  /* Three signals, two of which carry bytes, before anybody expects them. */
  OK(weft_peer_signal(both->to_reader, 9, "a", 1, patience, &error));
  OK(weft_peer_signal(both->to_reader, 9, NULL, 0, patience, &error));
  OK(weft_peer_signal(both->to_reader, 9, "bc", 2, patience, &error));
  weft_expectation* expectation = NULL;
  OK(weft_peer_expect(both->to_writer, 9, 3, NULL, &expectation, &error));
  OK(weft_expectation_wait(expectation, patience, &error));
  CHECK(weft_expectation_payload_count(expectation) == 2);
  weft_expectation_free(expectation);

  /* A signal that comes too late is dropped, and one that is forgotten too. */
  const weft_notify_options once = {.size = sizeof once, .late = WEFT_LATE_DROP};
  OK(weft_peer_expect(both->to_writer, 10, 1, &once, &expectation, &error));
  weft_expectation_free(expectation);
  OK(weft_peer_forget(both->to_writer, 11, 12, &error));
  for (uint64_t id = 10; id <= 13; ++id)
    OK(weft_peer_signal(both->to_reader, id, NULL, 0, patience, &error));
  for (uint64_t id = 13; id >= 10; --id) {
    OK(weft_peer_expect(both->to_writer, id, 1, NULL, &expectation, &error));
    if (id == 13)
      OK(weft_expectation_wait(expectation, patience, &error));
    else
      CHECK(!weft_expectation_ready(expectation));
    weft_expectation_free(expectation);
  }

  struct endings arrived = {0};
  const weft_notify_options notify = {.size = sizeof notify,
                                      .cookie = 11,
                                      .event = true,
                                      .on_end = on_arrival,
                                      .context = &arrived};
  weft_receive *receive = NULL, *message = NULL;
  OK(weft_peer_receive(both->to_writer, 0x20, 0xf0, &notify, &receive, &error));
  REFUSED(WEFT_TIMED_OUT, weft_receive_wait(receive, 0, &error));
  CHECK(!weft_receive_ready(receive) && weft_receive_data(receive) == NULL);
  OK(weft_peer_send(both->to_reader, 0x11, "first", 5, patience, &error));
  OK(weft_peer_send(both->to_reader, 0x2f, "second", 6, patience, &error));
  OK(weft_peer_send(both->to_reader, 0x12, NULL, 0, patience, &error));
  OK(weft_receive_wait(receive, patience, &error));
  CHECK(weft_receive_ready(receive) && weft_receive_tag(receive) == 0x2f);
  CHECK(weft_receive_bytes(receive) == 6 && memcmp(weft_receive_data(receive), "second", 6) == 0);
  CHECK(strcmp(weft_receive_peer(receive), weft_engine_name(both->writer)) == 0);
  weft_receive_free(receive);
  await_calls(&arrived, 1);
  drain_events(both->reader, WEFT_EVENT_MESSAGE_ARRIVED, 11);

  OK(weft_peer_recv(both->to_writer, 0x11, UINT64_MAX, patience, &message, &error));
  CHECK(weft_receive_bytes(message) == 5 && memcmp(weft_receive_data(message), "first", 5) == 0);
  weft_receive_free(message);
  OK(weft_peer_recv(both->to_writer, 0, 0, patience, &message, &error));
  CHECK(weft_receive_tag(message) == 0x12 && weft_receive_bytes(message) == 0);
  weft_receive_free(message);
  message = NULL;
  REFUSED(WEFT_TIMED_OUT, weft_peer_recv(both->to_writer, 1, UINT64_MAX, 1000, &message, &error));
  CHECK(message == NULL);
}

static void count(void* calls) {
  ++*(int*)calls;
}

static void refusals(struct pair_of_engines* both) {
  const weft_pair outside = {.local = 0, .remote = cache_bytes - 1, .length = 2};
  const weft_pair inside = {.local = 0, .remote = 0, .length = 64};
  weft_prepared* prepared = NULL;
  weft_transfer* transfer = NULL;
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_write(both->writer, both->source, both->remote,
                                                   &outside, 1, NULL, &transfer, &error));
  const weft_pair far = {.local = UINT64_MAX, .remote = 0, .length = 2};
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_prepare_pairs(both->writer, both->source, both->remote,
                                                           WEFT_READ, &far, 1, &prepared, &error));
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_prepare_pairs(both->writer, both->source, both->remote,
                                                           2, &inside, 1, &prepared, &error));
  /* No vector has room for so many; nothing is read of them. */
  REFUSED(WEFT_OUT_OF_MEMORY,
          weft_engine_prepare_pairs(both->writer, both->source, both->remote, WEFT_READ, &inside,
                                    SIZE_MAX, &prepared, &error));
  CHECK(prepared == NULL && transfer == NULL);
  OK(weft_engine_prepare_pairs(both->writer, both->source, both->remote, WEFT_WRITE, &inside, 1,
                               &prepared, &error));
  const uint32_t pick = 1;
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_engine_submit(both->writer, prepared, &pick, 1, NULL, &transfer, &error));
  const weft_transfer_options strange = {.size = sizeof strange, .transport = 9};
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_engine_submit_all(both->writer, prepared, &strange, &transfer, &error));
  const weft_transfer_options unheard = {.size = sizeof unheard, .priority = 2};
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_engine_submit_all(both->writer, prepared, &unheard, &transfer, &error));
  /* As a program does that was built before there were priorities. */
  const weft_transfer_options old = {.size = offsetof(weft_transfer_options, wait_for_room_ns),
                                     .priority = 2};
  OK(weft_engine_submit_all(both->writer, prepared, &old, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
  const weft_transfer_options urgent = {.size = sizeof urgent,
                                        .priority = WEFT_PRIORITY_LATENCY,
                                        .wait_for_room_ns = patience,
                                        .verify = true};
  OK(weft_engine_submit_all(both->writer, prepared, &urgent, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
  const weft_transfer_options late = {.size = sizeof late, .timeout_ns = -1};
  OK(weft_engine_submit_all(both->writer, prepared, &late, &transfer, &error));
  REFUSED(WEFT_TIMED_OUT, weft_transfer_wait(transfer, patience, &error));
  CHECK(weft_transfer_state(transfer) == WEFT_STATE_TIMED_OUT);
  OK(weft_transfer_cancel(transfer, &error)); /* too late to change anything */
  CHECK(weft_transfer_state(transfer) == WEFT_STATE_TIMED_OUT);
  weft_transfer_free(transfer);

  weft_grant* grant = NULL;
  weft_remote* remote = NULL;
  const weft_range part = {.offset = 64, .length = 64};
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_segment_grant(both->cache, NULL, 0, 0, 0, WEFT_KEYS_AUTOMATIC, &grant, &error));
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_segment_grant(both->cache, NULL, 0, 257, 0, WEFT_KEYS_AUTOMATIC, &grant, &error));
  weft_segment* constant = NULL;
  OK(weft_engine_adopt_read_only(both->reader, "constant", 8, &constant, &error));
  REFUSED(WEFT_PERMISSION_DENIED, weft_segment_grant(constant, NULL, 0, WEFT_RIGHT_WRITE, 0,
                                                     WEFT_KEYS_AUTOMATIC, &grant, &error));
  OK(weft_segment_release(constant, patience, &error));
  weft_segment_free(constant);
  static char forgotten[8];
  int let_go = 0;
  OK(weft_engine_adopt_owned(both->reader, forgotten, 8, count, &let_go, &constant, &error));
  OK(weft_segment_release(constant, patience, &error));
  weft_segment_free(constant);
  CHECK(let_go == 1);
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_engine_adopt_owned(both->reader, NULL, 8, count, &let_go, &constant, &error));
  CHECK(let_go == 2);
  OK(weft_segment_grant(both->cache, &part, 1, WEFT_RIGHT_READ, 0, WEFT_KEYS_AUTOMATIC, &grant,
                        &error));
  OK(weft_engine_publish(both->reader, "part", grant, &error));
  OK(weft_peer_lookup(both->to_reader, "part", patience, &remote, &error));
  REFUSED(WEFT_PERMISSION_DENIED, weft_engine_write(both->writer, both->source, remote, &inside, 1,
                                                    NULL, &transfer, &error));
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_read(both->writer, both->source, remote, &inside, 1,
                                                  NULL, &transfer, &error));
  OK(weft_grant_renew(grant, 0, &error));
  OK(weft_grant_revoke(grant, patience, &error));
  REFUSED(WEFT_STALE, weft_grant_renew(grant, 0, &error));
  const weft_pair allowed = {.local = 0, .remote = 64, .length = 64};
  /* Whoever only reads is not waited for: he is told, or finds out when the bytes have come. */
  const weft_code read =
      weft_engine_read(both->writer, both->source, remote, &allowed, 1, NULL, &transfer, NULL);
  if (read == WEFT_OK) {
    REFUSED(WEFT_STALE, weft_transfer_wait(transfer, patience, &error));
    weft_transfer_free(transfer);
  } else {
    CHECK(read == WEFT_STALE);
  }
  weft_remote_free(remote);
  weft_grant_free(grant);

  unsigned char blob[1024] = {0};
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_engine_import(both->writer, blob, sizeof blob, &remote, &error));
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_import(both->writer, NULL, 0, &remote, &error));
  REFUSED(WEFT_TIMED_OUT, weft_peer_lookup(both->to_reader, "nothing", 1000, &remote, &error));
  static const char large[1 << 16];
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_peer_send(both->to_reader, 1, large, sizeof large, patience, &error));
  weft_expectation* expectation = NULL;
  REFUSED(WEFT_INVALID_ARGUMENT,
          weft_peer_expect(both->to_writer, 1, 0, NULL, &expectation, &error));
  OK(weft_segment_release(both->source, patience, &error));
  REFUSED(WEFT_CLOSED, weft_engine_submit_all(both->writer, prepared, NULL, &transfer, &error));
  weft_prepared_free(prepared);
}

static void goodbye(struct pair_of_engines* both) {
  weft_expectation* expectation = NULL;
  OK(weft_peer_expect(both->to_reader, 77, 1, NULL, &expectation, &error));
  OK(weft_engine_close(both->reader, patience, &error));
  REFUSED(WEFT_PEER_DOWN, weft_expectation_wait(expectation, patience, &error));
  weft_expectation_free(expectation);
  CHECK(!weft_peer_up(both->to_reader));
  REFUSED(WEFT_PEER_DOWN, weft_peer_signal(both->to_reader, 1, NULL, 0, patience, &error));
  weft_error* error = NULL;
  CHECK(weft_peer_check(both->to_reader, &error) != WEFT_OK && error != NULL);
  weft_error_free(error);

  weft_peer* peer = NULL;
  REFUSED(WEFT_CLOSED, weft_engine_accept(both->reader, patience, &peer, &error));
  REFUSED(WEFT_CLOSED, weft_segment_grant(both->cache, NULL, 0, WEFT_RIGHT_READ, 0,
                                          WEFT_KEYS_AUTOMATIC, &both->grant, &error));
  weft_segment* segment = NULL;
  REFUSED(WEFT_CLOSED, weft_engine_add_own(both->reader, 1, &segment, &error));
  OK(weft_engine_close(both->reader, patience, &error));

  /* In any order, the engines before what they made among it. */
  weft_engine_free(both->reader);
  REFUSED(WEFT_CLOSED, weft_grant_revoke(both->grant, patience, &error));
  CHECK(weft_segment_size(both->cache) == cache_bytes);
  CHECK(weft_peer_up(both->to_writer) == false && weft_peer_name(both->to_writer) != NULL);
  OK(weft_peer_disconnect(both->to_reader, &error));
  weft_engine_free(both->writer);
  weft_grant_free(both->grant);
  weft_segment_free(both->cache);
  weft_segment_free(both->source);
  weft_remote_free(both->remote);
  weft_peer_free(both->to_reader);
  weft_peer_free(both->to_writer);
  free(both->memory);
}

static void paths_and_policies(struct pair_of_engines* both, const char* provider,
                               const char* transport) {
  weft_path* path = NULL;
  OK(weft_engine_explain(both->writer, both->source, both->remote, WEFT_WRITE, NULL, &path,
                         &error));
  weft_path_summary summary = {.size = sizeof summary};
  OK(weft_path_get(path, &summary, &error));
  CHECK(strcmp(summary.provider, provider) == 0 && summary.same_host);
  CHECK((summary.transport == WEFT_TRANSPORT_BOUNCE) == (strcmp(transport, "bounce") == 0));
  CHECK(summary.copies > 0 && summary.copies == summary.copies_local + summary.copies_remote);
  CHECK(summary.cpu_copies == summary.copies && !summary.gpudirect_local);
  CHECK(strlen(summary.limit) > 0 && strlen(summary.refused) == 0);
  CHECK(summary.hop_count > 0);
  for (size_t i = 0; i < summary.not_used_count; ++i)
    CHECK(strlen(weft_path_not_used(path, i)) > 0);
  CHECK(weft_path_not_used(path, summary.not_used_count) == NULL);
  unsigned copies = 0;
  for (size_t i = 0; i < summary.hop_count; ++i) {
    weft_hop hop = {.size = sizeof hop};
    OK(weft_path_hop(path, i, &hop, &error));
    CHECK(strlen(hop.from_text) > 0 && strlen(hop.to_text) > 0);
    CHECK(hop.copies == (hop.by != WEFT_MOVER_NIC));
    if (i == 0) CHECK(hop.from == WEFT_STOP_HOST && hop.from_side == WEFT_SIDE_LOCAL);
    if (i + 1 == summary.hop_count)
      CHECK(hop.to == WEFT_STOP_HOST && hop.to_side == WEFT_SIDE_REMOTE);
    copies += hop.copies;
  }
  CHECK(copies == summary.copies);
  weft_hop none = {.size = sizeof none};
  REFUSED(WEFT_INVALID_ARGUMENT, weft_path_hop(path, summary.hop_count, &none, &error));
  weft_path_free(path);

  weft_transfer_options options = {.size = sizeof options, .policy = "forbid_cpu_copies"};
  OK(weft_engine_explain(both->writer, both->source, both->remote, WEFT_READ, &options, &path,
                         &error));
  OK(weft_path_get(path, &summary, &error));
  CHECK(strstr(summary.refused, "forbids copies by the CPU") != NULL);
  weft_path_free(path);

  const weft_pair pair = {.local = 0, .remote = 0, .length = page};
  weft_transfer* transfer = NULL;
  REFUSED(WEFT_POLICY_REFUSED, weft_engine_write(both->writer, both->source, both->remote, &pair, 1,
                                                 &options, &transfer, &error));
  CHECK(transfer == NULL);
  options.policy = "max_copies=few";
  REFUSED(WEFT_INVALID_ARGUMENT, weft_engine_write(both->writer, both->source, both->remote, &pair,
                                                   1, &options, &transfer, &error));
  options.policy = "max_copies=20";
  OK(weft_engine_write(both->writer, both->source, both->remote, &pair, 1, &options, &transfer,
                       &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
}

/* The same thread drives both engines, so it may wait for neither alone. */
static void manual_progress(const char* provider, const char* transport) {
  struct pair_of_engines both = {
      .writer = open_engine(provider, transport, "manual"),
      .reader = open_engine(provider, transport, "manual"),
  };
  meet(&both, provider);
  share_memory(&both);
  const weft_pair pair = {.local = 1, .remote = 2, .length = 100000};
  weft_transfer* transfer = NULL;
  /* Of other classes the call may copy it itself. */
  const weft_transfer_options bulk = {.size = sizeof bulk, .priority = WEFT_PRIORITY_BULK};
  OK(weft_engine_write(both.writer, both.source, both.remote, &pair, 1, &bulk, &transfer, &error));
  const int64_t end = now_ns() + patience;
  size_t operations = 0;
  while (weft_transfer_state(transfer) == WEFT_STATE_ACTIVE && now_ns() < end) {
    size_t ended = 0;
    OK(weft_engine_progress(both.writer, &ended, &error));
    OK(weft_engine_progress(both.reader, NULL, &error));
    operations += ended;
  }
  OK(weft_transfer_wait(transfer, 0, &error));
  CHECK(operations > 0);
  const unsigned char* cache = weft_segment_data(both.cache);
  CHECK(cache[1] == 0 && memcmp(cache + 2, both.memory + 1, 100000) == 0 && cache[100002] == 0);
  weft_transfer_free(transfer);
  goodbye(&both);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  weft_prepare_process();
  const char* provider = argv[1];
  const char* transport = strcmp(argv[2], "bounce") == 0 ? "bounce" : "automatic";
  struct pair_of_engines both = {
      .writer = open_engine(provider, transport, "threads"),
      .reader = open_engine(provider, transport, "threads"),
  };
  meet(&both, provider);
  share_memory(&both);
  make_contact(&both);
  prepared_writes(&both);
  open_rail_again(&both);
  read_back(&both);
  other_forms(&both);
  signals_and_messages(&both);
  paths_and_policies(&both, provider, transport);
  refusals(&both);
  goodbye(&both);
  manual_progress(provider, transport);
  return 0;
}
