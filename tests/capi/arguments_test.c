/* NULL, strange numbers, wrong sizes and hopeless wishes: a status each time, and never a crash. */
#include <ftw.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define INVALID(call) REFUSED(WEFT_INVALID_ARGUMENT, call)

static weft_engine *engine, *no_engine;
static weft_segment *segment, *no_segment;
static weft_grant *grant, *no_grant;
static weft_peer *peer, *no_peer;
static weft_remote* remote;

static void frees_take_null(void) {
  weft_error_free(NULL);
  weft_engine_free(NULL);
  weft_info_free(NULL);
  weft_text_free(NULL);
  weft_nics_free(NULL);
  weft_peer_free(NULL);
  weft_segment_free(NULL);
  weft_grant_free(NULL);
  weft_remote_free(NULL);
  weft_prepared_free(NULL);
  weft_transfer_free(NULL);
  weft_expectation_free(NULL);
  weft_receive_free(NULL);
  weft_kv_layout_free(NULL);
  weft_kv_cache_free(NULL);
  weft_kv_plan_free(NULL);
  weft_config_free(NULL);
}

static void getters_take_null(void) {
  CHECK(weft_error_code(NULL) == WEFT_OK && weft_error_fabric_code(NULL) == 0);
  CHECK(!weft_error_message(NULL) && !weft_error_peer(NULL) && !weft_error_rail(NULL));
  CHECK(!weft_error_operation(NULL) && !weft_error_string(NULL));
  CHECK(!weft_engine_name(NULL) && !weft_engine_address(NULL) && weft_engine_event_fd(NULL) == -1);
  CHECK(weft_engine_accept_fd(NULL) == -1);
  CHECK(weft_info_incarnation(NULL) == 0 && weft_info_transfers_active(NULL) == 0);
  CHECK(weft_info_segments(NULL) == 0 && weft_info_rail_count(NULL) == 0);
  CHECK(weft_info_candidate_count(NULL) == 0);
  CHECK(!weft_engine_metrics_address(NULL) && !weft_text_get(NULL));
  CHECK(weft_nics_count(NULL) == 0 && !weft_nics_rail(NULL, 0, 0));
  CHECK(!weft_peer_name(NULL) && !weft_peer_address(NULL) && !weft_peer_route_reason(NULL));
  CHECK(!weft_peer_fallback(NULL));
  CHECK(weft_peer_incarnation(NULL) == 0 && !weft_peer_up(NULL) && !weft_peer_same_host(NULL));
  CHECK(weft_peer_rail_count(NULL) == 0 && !weft_peer_rail(NULL, 0));
  CHECK(!weft_segment_data(NULL) && weft_segment_size(NULL) == 0 && weft_segment_fd(NULL) == -1);
  CHECK(!weft_grant_blob(NULL) && weft_grant_blob_size(NULL) == 0 && !weft_grant_lease_id(NULL));
  CHECK(!weft_remote_peer(NULL) && weft_remote_segment_size(NULL) == 0);
  CHECK(weft_remote_rights(NULL) == 0 && weft_remote_range_count(NULL) == 0);
  CHECK(weft_prepared_size(NULL) == 0 && weft_prepared_bytes(NULL) == 0);
  CHECK(weft_transfer_state(NULL) == -1 && !weft_transfer_quiescent(NULL));
  size_t bytes = 1;
  CHECK(!weft_expectation_ready(NULL) && weft_expectation_payload_count(NULL) == 0);
  CHECK(!weft_expectation_payload(NULL, 0, &bytes) && bytes == 0);
  CHECK(!weft_expectation_payload(NULL, 0, NULL));
  CHECK(!weft_receive_ready(NULL) && weft_receive_tag(NULL) == 0 && !weft_receive_peer(NULL));
  CHECK(!weft_receive_data(NULL) && weft_receive_bytes(NULL) == 0);
  CHECK(weft_kv_layout_group_count(NULL) == 0 && weft_kv_layout_region_count(NULL) == 0);
  CHECK(weft_kv_layout_region_bytes(NULL, 0) == 0 && weft_kv_layout_bytes(NULL) == 0);
  CHECK(weft_kv_layout_bytes_per_token(NULL) == 0 && weft_kv_layout_state_bytes(NULL) == 0);
  CHECK(!weft_kv_plan_copies(NULL) && weft_kv_plan_count(NULL) == 0);
  CHECK(weft_kv_plan_bytes(NULL) == 0 && weft_kv_plan_pieces(NULL) == 0);
}

static void engines_refuse_null(void) {
  weft_info* info = NULL;
  weft_rail_info rail = {.size = sizeof rail};
  weft_candidate candidate = {.size = sizeof candidate};
  size_t count = 0;
  weft_peer* made = NULL;
  INVALID(weft_engine_open(NULL, NULL, &error));
  INVALID(weft_engine_close(NULL, 0, &error));
  INVALID(weft_engine_info(NULL, &info, &error));
  INVALID(weft_engine_info(engine, NULL, &error));
  INVALID(weft_discover(NULL, NULL, &error));
  weft_text* text = NULL;
  INVALID(weft_engine_metrics_text(NULL, &text, &error));
  INVALID(weft_engine_metrics_text(engine, NULL, &error));
  INVALID(weft_engine_snapshot(NULL, &text, &error));
  INVALID(weft_engine_snapshot(engine, NULL, &error));
  weft_nics* nics = NULL;
  weft_nic_counters counters = {.size = sizeof counters};
  INVALID(weft_engine_nic_counters(NULL, &nics, &error));
  INVALID(weft_engine_nic_counters(engine, NULL, &error));
  INVALID(weft_nics_counters(NULL, 0, &counters, &error));
  INVALID(weft_info_rail(NULL, 0, &rail, &error));
  INVALID(weft_info_candidate(NULL, 0, &candidate, &error));
  INVALID(weft_engine_connect(NULL, "127.0.0.1:1", 0, &made, &error));
  INVALID(weft_engine_connect(engine, NULL, 0, &made, &error));
  INVALID(weft_engine_connect(engine, "127.0.0.1:1", 0, NULL, &error));
  INVALID(weft_engine_accept(NULL, 0, &made, &error));
  INVALID(weft_engine_accept(engine, 0, NULL, &error));
  INVALID(weft_engine_peers(NULL, &made, 1, &count, &error));
  INVALID(weft_engine_peers(engine, NULL, 1, &count, &error));
  INVALID(weft_engine_peers(engine, &made, 1, NULL, &error));
  INVALID(weft_peer_disconnect(NULL, &error));
  INVALID(weft_engine_reopen(NULL, "tcp:0", 0, &error));
  INVALID(weft_engine_reopen(engine, NULL, 0, &error));
  INVALID(weft_engine_reopen(engine, "tcp:99", 0, &error));
  INVALID(weft_peer_check(NULL, &error));
  INVALID(weft_engine_progress(NULL, &count, &error));
  weft_event event;
  INVALID(weft_engine_poll(NULL, &event, 1, &count, &error));
  INVALID(weft_engine_poll(engine, NULL, 1, &count, &error));
  INVALID(weft_engine_poll(engine, &event, 1, NULL, &error));
  CHECK(weft_engine_connect(engine, NULL, 0, &made, NULL) == WEFT_INVALID_ARGUMENT);
}

static void memory_refuses_null(void) {
  weft_place place;
  weft_range range;
  char byte;
  INVALID(weft_engine_add_own(NULL, 1, &no_segment, &error));
  INVALID(weft_engine_add_own(engine, 1, NULL, &error));
  INVALID(weft_engine_add_own(engine, 0, &no_segment, &error));
  INVALID(weft_engine_add_huge(NULL, 1, &no_segment, &error));
  INVALID(weft_engine_add_huge(engine, 1, NULL, &error));
  INVALID(weft_engine_add_huge_pages(NULL, 1, 1 << 21, &no_segment, &error));
  INVALID(weft_engine_add_huge_pages(engine, 1, 3, &no_segment, &error));
  REFUSED(WEFT_UNSUPPORTED, weft_engine_add_huge_pages(engine, 1, 8192, &no_segment, &error));
  INVALID(weft_engine_add_shared(NULL, 1, &no_segment, &error));
  INVALID(weft_engine_add_shared(engine, 1, NULL, &error));
  INVALID(weft_engine_add_map(NULL, 0, 0, 1, &no_segment, &error));
  INVALID(weft_engine_add_map(engine, 0, 0, 1, NULL, &error));
  INVALID(weft_engine_add_map(engine, -1, 0, 1, &no_segment, &error));
  INVALID(weft_engine_adopt(NULL, &byte, 1, &no_segment, &error));
  INVALID(weft_engine_adopt(engine, NULL, 1, &no_segment, &error));
  INVALID(weft_engine_add_own_near(NULL, 1, "0000:00:00.0", &no_segment, &error));
  INVALID(weft_engine_add_own_near(engine, 1, NULL, &no_segment, &error));
  INVALID(weft_engine_adopt_read_only(engine, NULL, 1, &no_segment, &error));
  INVALID(weft_engine_add_file(engine, NULL, 0, 1, NULL, &no_segment, &error));
  REFUSED(WEFT_NOT_FOUND,
          weft_engine_add_file(engine, "/no/such/file", 0, 1, NULL, &no_segment, &error));
  weft_file_options no_size = {.durable = true};
  INVALID(weft_engine_add_file(engine, "/no/such/file", 0, 1, &no_size, &no_segment, &error));
  weft_file_options odd_blocks = {.size = sizeof odd_blocks, .read_only = true, .checked_block = 3};
  INVALID(weft_engine_add_file(engine, "/proc/self/exe", 0, 0, &odd_blocks, &no_segment, &error));
  weft_file_options no_room = {.size = sizeof no_room, .read_only = true, .reserve = true};
  INVALID(weft_engine_add_file(engine, "/proc/self/exe", 0, 0, &no_room, &no_segment, &error));
  INVALID(weft_segment_copy(segment, NULL, NULL, 0, 0, &error));
  INVALID(weft_engine_adopt_near(engine, NULL, 1, "0000:00:00.0", &no_segment, &error));
  INVALID(weft_engine_adopt(engine, &byte, 1, NULL, &error));
  INVALID(weft_engine_adopt_owned(engine, &byte, 1, NULL, NULL, &no_segment, &error));
  INVALID(weft_segment_release(NULL, 0, &error));
  INVALID(weft_segment_place(NULL, &place, &error));
  INVALID(weft_segment_place(segment, NULL, &error));
  INVALID(weft_segment_grant(NULL, NULL, 0, WEFT_RIGHT_READ, 0, WEFT_KEYS_AUTOMATIC, &no_grant,
                             &error));
  INVALID(weft_segment_grant(segment, NULL, 1, WEFT_RIGHT_READ, 0, WEFT_KEYS_AUTOMATIC, &no_grant,
                             &error));
  INVALID(
      weft_segment_grant(segment, NULL, 0, WEFT_RIGHT_READ, 0, WEFT_KEYS_AUTOMATIC, NULL, &error));
  INVALID(weft_grant_revoke(NULL, 0, &error));
  INVALID(weft_grant_renew(NULL, 0, &error));
  INVALID(weft_grant_fence(NULL, 0, &error));
  INVALID(weft_grant_fence_rails(NULL, 0, &error));
  weft_remote* imported = NULL;
  INVALID(weft_engine_import(NULL, "x", 1, &imported, &error));
  INVALID(weft_engine_import(engine, NULL, 1, &imported, &error));
  INVALID(weft_engine_import(engine, "x", 1, NULL, &error));
  INVALID(weft_engine_publish(NULL, "name", grant, &error));
  INVALID(weft_engine_publish(engine, NULL, grant, &error));
  INVALID(weft_engine_publish(engine, "name", NULL, &error));
  INVALID(weft_engine_publish(engine, "", grant, &error));
  INVALID(weft_peer_lookup(NULL, "name", 0, &imported, &error));
  INVALID(weft_peer_lookup(peer, NULL, 0, &imported, &error));
  INVALID(weft_peer_lookup(peer, "name", 0, NULL, &error));
  INVALID(weft_remote_place(NULL, &place, &error));
  INVALID(weft_remote_place(remote, NULL, &error));
  INVALID(weft_remote_range(NULL, 0, &range, &error));
  INVALID(weft_remote_range(remote, 0, NULL, &error));
}

static void transfers_refuse_null(void) {
  const weft_pair pair = {.length = 1};
  const weft_strided strided = {.first = {.length = 1}, .count = 1};
  const uint32_t page = 0;
  const weft_paged paged = {
      .page_bytes = 1, .local_pages = &page, .remote_pages = &page, .count = 1};
  weft_prepared *prepared = NULL, *made = NULL;
  weft_transfer* transfer = NULL;
  OK(weft_engine_prepare_pairs(engine, segment, remote, WEFT_WRITE, &pair, 1, &prepared, &error));

  INVALID(weft_engine_prepare_pairs(NULL, segment, remote, 0, &pair, 1, &made, &error));
  INVALID(weft_engine_prepare_pairs(engine, NULL, remote, 0, &pair, 1, &made, &error));
  INVALID(weft_engine_prepare_pairs(engine, segment, NULL, 0, &pair, 1, &made, &error));
  INVALID(weft_engine_prepare_pairs(engine, segment, remote, 0, NULL, 1, &made, &error));
  INVALID(weft_engine_prepare_pairs(engine, segment, remote, 0, &pair, 1, NULL, &error));
  INVALID(weft_engine_prepare_pairs(engine, segment, remote, -1, &pair, 1, &made, &error));
  INVALID(weft_engine_prepare_strided(NULL, segment, remote, 0, &strided, &made, &error));
  INVALID(weft_engine_prepare_strided(engine, NULL, remote, 0, &strided, &made, &error));
  INVALID(weft_engine_prepare_strided(engine, segment, NULL, 0, &strided, &made, &error));
  INVALID(weft_engine_prepare_strided(engine, segment, remote, 0, NULL, &made, &error));
  INVALID(weft_engine_prepare_strided(engine, segment, remote, 0, &strided, NULL, &error));
  INVALID(weft_engine_prepare_paged(NULL, segment, remote, 0, &paged, &made, &error));
  INVALID(weft_engine_prepare_paged(engine, NULL, remote, 0, &paged, &made, &error));
  INVALID(weft_engine_prepare_paged(engine, segment, NULL, 0, &paged, &made, &error));
  INVALID(weft_engine_prepare_paged(engine, segment, remote, 0, NULL, &made, &error));
  INVALID(weft_engine_prepare_paged(engine, segment, remote, 0, &paged, NULL, &error));
  weft_paged half = paged;
  half.remote_pages = NULL;
  INVALID(weft_engine_prepare_paged(engine, segment, remote, 0, &half, &made, &error));

  INVALID(weft_engine_submit(NULL, prepared, &page, 1, NULL, &transfer, &error));
  INVALID(weft_engine_submit(engine, NULL, &page, 1, NULL, &transfer, &error));
  INVALID(weft_engine_submit(engine, prepared, NULL, 1, NULL, &transfer, &error));
  INVALID(weft_engine_submit(engine, prepared, &page, 1, NULL, NULL, &error));
  INVALID(weft_engine_submit_all(NULL, prepared, NULL, &transfer, &error));
  INVALID(weft_engine_submit_all(engine, NULL, NULL, &transfer, &error));
  INVALID(weft_engine_submit_all(engine, prepared, NULL, NULL, &error));
  INVALID(weft_engine_write(NULL, segment, remote, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_write(engine, NULL, remote, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_write(engine, segment, NULL, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_write(engine, segment, remote, NULL, 1, NULL, &transfer, &error));
  INVALID(weft_engine_write(engine, segment, remote, &pair, 1, NULL, NULL, &error));
  INVALID(weft_engine_warm(NULL, segment, remote, NULL, &transfer, &error));
  INVALID(weft_engine_warm(engine, NULL, remote, NULL, &transfer, &error));
  INVALID(weft_engine_warm(engine, segment, NULL, NULL, &transfer, &error));
  INVALID(weft_engine_warm(engine, segment, remote, NULL, NULL, &error));
  INVALID(weft_engine_read(NULL, segment, remote, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_read(engine, NULL, remote, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_read(engine, segment, NULL, &pair, 1, NULL, &transfer, &error));
  INVALID(weft_engine_read(engine, segment, remote, NULL, 1, NULL, &transfer, &error));
  INVALID(weft_engine_read(engine, segment, remote, &pair, 1, NULL, NULL, &error));
  weft_transfer_options options = {.size = sizeof options, .signal = true, .signal_bytes = 1};
  INVALID(weft_engine_submit_all(engine, prepared, &options, &transfer, &error));
  options = (weft_transfer_options){.size = 0};
  INVALID(weft_engine_submit_all(engine, prepared, &options, &transfer, &error));
  options.size = SIZE_MAX;
  INVALID(weft_engine_submit_all(engine, prepared, &options, &transfer, &error));
  /* Set by a program that was built against a later version, and not understood. */
  struct {
    weft_transfer_options known;
    uint64_t added[4];
  } later = {.known = {.size = sizeof later}, .added = {0, 0, 0, 1}};
  REFUSED(WEFT_UNSUPPORTED,
          weft_engine_submit_all(engine, prepared, &later.known, &transfer, &error));
  CHECK(transfer == NULL);
  later.added[3] = 0;
  OK(weft_engine_submit_all(engine, prepared, &later.known, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  weft_transfer_free(transfer);
  transfer = NULL;
  CHECK(made == NULL && transfer == NULL);

  weft_path* path = NULL;
  weft_path_summary summary = {.size = sizeof summary};
  weft_hop hop = {.size = sizeof hop};
  INVALID(weft_engine_explain(NULL, segment, remote, WEFT_WRITE, NULL, &path, &error));
  INVALID(weft_engine_explain(engine, NULL, remote, WEFT_WRITE, NULL, &path, &error));
  INVALID(weft_engine_explain(engine, segment, NULL, WEFT_WRITE, NULL, &path, &error));
  INVALID(weft_engine_explain(engine, segment, remote, 2, NULL, &path, &error));
  INVALID(weft_engine_explain(engine, segment, remote, WEFT_WRITE, &options, &path, &error));
  INVALID(weft_engine_explain(engine, segment, remote, WEFT_WRITE, NULL, NULL, &error));
  INVALID(weft_path_get(NULL, &summary, &error));
  INVALID(weft_path_hop(NULL, 0, &hop, &error));
  CHECK(path == NULL && weft_path_not_used(NULL, 0) == NULL);
  OK(weft_engine_explain(engine, segment, remote, WEFT_WRITE, NULL, &path, &error));
  INVALID(weft_path_get(path, NULL, &error));
  INVALID(weft_path_hop(path, 0, NULL, &error));
  summary.size = hop.size = 0;
  INVALID(weft_path_get(path, &summary, &error));
  INVALID(weft_path_hop(path, 0, &hop, &error));
  weft_path_free(path);
  weft_path_free(NULL);

  weft_report report = {.size = sizeof report};
  weft_rail_share share;
  INVALID(weft_transfer_wait(NULL, 0, &error));
  INVALID(weft_transfer_wait_quiescent(NULL, 0, &error));
  INVALID(weft_transfer_cancel(NULL, &error));
  INVALID(weft_transfer_report(NULL, &report, &error));
  INVALID(weft_transfer_rail_share(NULL, 0, &share, &error));
  weft_copied copied;
  INVALID(weft_transfer_copied(NULL, 0, &copied, &error));
  OK(weft_engine_submit_all(engine, prepared, NULL, &transfer, &error));
  OK(weft_transfer_wait(transfer, patience, &error));
  INVALID(weft_transfer_report(transfer, NULL, &error));
  INVALID(weft_transfer_rail_share(transfer, 0, NULL, &error));
  INVALID(weft_transfer_copied(transfer, 0, NULL, &error));
  report.size = 8;
  INVALID(weft_transfer_report(transfer, &report, &error));
  weft_transfer_free(transfer);
  weft_prepared_free(prepared);
}

static void messages_refuse_null(void) {
  weft_expectation* expectation = NULL;
  weft_receive* receive = NULL;
  const weft_notify_options unset = {.size = 0};
  INVALID(weft_peer_signal(NULL, 1, "x", 1, 0, &error));
  INVALID(weft_peer_signal(peer, 1, NULL, 1, 0, &error));
  INVALID(weft_peer_expect(NULL, 1, 1, NULL, &expectation, &error));
  INVALID(weft_peer_expect(peer, 1, 1, NULL, NULL, &error));
  INVALID(weft_peer_expect(peer, 1, 1, &unset, &expectation, &error));
  const weft_notify_options no_such = {.size = sizeof no_such, .late = 3};
  INVALID(weft_peer_expect(peer, 1, 1, &no_such, &expectation, &error));
  INVALID(weft_expectation_wait(NULL, 0, &error));
  INVALID(weft_peer_forget(NULL, 1, 2, &error));
  INVALID(weft_peer_forget(peer, 2, 1, &error));
  INVALID(weft_peer_send(NULL, 1, "x", 1, 0, &error));
  INVALID(weft_peer_send(peer, 1, NULL, 1, 0, &error));
  INVALID(weft_peer_receive(NULL, 1, 1, NULL, &receive, &error));
  INVALID(weft_peer_receive(peer, 1, 1, NULL, NULL, &error));
  INVALID(weft_peer_receive(peer, 1, 1, &unset, &receive, &error));
  INVALID(weft_peer_recv(NULL, 1, 1, 0, &receive, &error));
  INVALID(weft_peer_recv(peer, 1, 1, 0, NULL, &error));
  INVALID(weft_receive_wait(NULL, 0, &error));
  CHECK(expectation == NULL && receive == NULL);
}

static void not_opened_with(const char* option, const char* text, weft_code code) {
  weft_config* config = config_with(option, text);
  REFUSED(code, weft_engine_open(config, &no_engine, &error));
  weft_config_free(config);
}

static void hopeless_wishes(void) {
  REFUSED(WEFT_OUT_OF_MEMORY, weft_engine_add_own(engine, SIZE_MAX, &no_segment, &error));
  REFUSED(WEFT_NOT_FOUND, weft_engine_add_own_near(engine, 1, "nowhere", &no_segment, &error));
  INVALID(weft_engine_connect(engine, "no address at all", patience, &no_peer, &error));

  /* A port that is taken but not listened on: nobody else can open it meanwhile. */
  const int held = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_storage storage = {.ss_family = AF_INET};
  socklen_t length = sizeof storage;
  CHECK(held >= 0 && bind(held, (struct sockaddr*)&storage, 16) == 0);
  CHECK(getsockname(held, (struct sockaddr*)&storage, &length) == 0);
  const unsigned char* port = (const unsigned char*)&storage + 2;
  char address[32];
  snprintf(address, sizeof address, "127.0.0.1:%d", port[0] * 256 + port[1]);
  REFUSED(WEFT_UNAVAILABLE, weft_engine_connect(engine, address, patience, &no_peer, &error));
  close(held);

  not_opened_with("listen", "no address at all", WEFT_INVALID_ARGUMENT);
  CHECK(no_engine == NULL && no_segment == NULL && no_peer == NULL);
}

static void configurations(void) {
  weft_config* config = NULL;
  INVALID(weft_config_create(NULL, &error));
  OK(weft_config_create(&config, &error));
  INVALID(weft_config_set(NULL, "rails", "1", &error));
  INVALID(weft_config_set(config, NULL, "1", &error));
  INVALID(weft_config_set(config, "rails", NULL, &error));
  REFUSED(WEFT_NOT_FOUND, weft_config_set(config, "rail", "1", &error));
  INVALID(weft_config_set(config, "rails", "many", &error));
  INVALID(weft_config_set(config, "rails", "65", &error));
  INVALID(weft_config_set(config, "progress", "automatic", &error));
  INVALID(weft_config_set(config, "transport", "-1", &error));
  INVALID(weft_config_set(config, "providers", "tcp,,shm", &error));
  INVALID(weft_config_set(config, "policy", "most_copies=1", &error));
  INVALID(weft_config_set(config, "latency_policy", "max_copies=few", &error));
  INVALID(weft_config_set(config, "bulk_policy", "min_gbps=fast", &error));
  INVALID(weft_config_set(config, "peer_policies", "max_copies=1", &error));
  /* What was refused has changed nothing. */
  weft_engine* opened = NULL;
  OK(weft_engine_open(config, &opened, &error));
  weft_engine_free(opened);
  INVALID(weft_engine_open(config, NULL, &error));

  OK(weft_config_set(config, "providers", "carrier-pigeon", &error));
  weft_error* error = NULL;
  CHECK(weft_engine_open(config, &no_engine, &error) != WEFT_OK);
  CHECK(strstr(weft_error_message(error), "carrier-pigeon") != NULL);
  weft_error_free(error);
  weft_config_free(config);

  not_opened_with("nics", "carrier-pigeon", WEFT_NOT_FOUND);
  not_opened_with("gpus", "carrier-pigeon", WEFT_NOT_FOUND);
  not_opened_with("topo_xml", "/nowhere/machine.xml", WEFT_NOT_FOUND);
  not_opened_with("secret_file", "/nowhere/secret", WEFT_INVALID_ARGUMENT);
  not_opened_with("tls_certificate", "/nowhere/certificate", WEFT_INVALID_ARGUMENT);
  not_opened_with("config_file", "/nowhere/weft.toml", WEFT_INVALID_ARGUMENT);
  config = config_with("tls_certificate", "/nowhere/certificate");
  OK(weft_config_set(config, "tls_key", "/nowhere/key", &error));
  OK(weft_config_set(config, "tls_authorities", "/nowhere/authorities", &error));
  INVALID(weft_engine_open(config, &no_engine, &error));
  weft_config_free(config);
  CHECK(no_engine == NULL);
}

static void table_of_options(void) {
  const size_t count = weft_option_count();
  weft_option option = {.size = sizeof option};
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    OK(weft_option_info(i, &option, &error));
    CHECK(option.name && option.variable && option.group && option.type && option.doc);
    if (strcmp(option.name, "bounce_buffers") != 0) continue;
    found = strcmp(option.variable, "WEFT_BOUNCE_BUFFERS") == 0 &&
            strcmp(option.standard, "4") == 0 && strcmp(option.least, "1") == 0 &&
            strcmp(option.most, "1024") == 0 && strcmp(option.unit, "buffers") == 0;
  }
  CHECK(found);
  INVALID(weft_option_info(count, &option, &error));
  INVALID(weft_option_info(0, NULL, &error));
  option.size = 0;
  INVALID(weft_option_info(0, &option, &error));
  option.size = SIZE_MAX;
  INVALID(weft_option_info(0, &option, &error));

  /* A program built against a later version: its new members are zero. */
  struct {
    weft_option known;
    uint64_t added[4];
  } later;
  memset(&later, 0xff, sizeof later);
  later.known.size = sizeof later;
  OK(weft_option_info(0, &later.known, &error));
  CHECK(later.known.size == sizeof later && later.added[0] == 0 && later.added[3] == 0);
}

static void descriptions(void) {
  weft_info* info = NULL;
  OK(weft_engine_info(engine, &info, &error));
  CHECK(weft_info_incarnation(info) != 0 && weft_info_segments(info) >= 1);
  CHECK(weft_info_transfers_active(info) == 0);
  CHECK(weft_info_rail_count(info) >= 1 && weft_info_candidate_count(info) >= 1);
  weft_rail_info rail = {.size = sizeof rail};
  OK(weft_info_rail(info, 0, &rail, &error));
  CHECK(strchr(rail.name, ':') != NULL && strlen(rail.provider) > 0);
  CHECK(rail.size == sizeof rail && rail.max_message > 0 && rail.window > 0);
  CHECK(rail.pci != NULL && rail.numa_node >= -1);
  CHECK(!rail.emulated_write && !rail.emulated_read && rail.copies > 0);
  CHECK(weft_info_fallback(info) != NULL);
  bool found = false;
  for (size_t i = 0; i < weft_info_setting_count(info); ++i) {
    weft_setting setting = {.size = sizeof setting};
    OK(weft_info_setting(info, i, &setting, &error));
    CHECK(strlen(setting.name) > 0 && setting.value != NULL && setting.place != NULL);
    if (strcmp(setting.name, "max_nics") == 0)
      found = setting.source == WEFT_SOURCE_DEFAULT && strcmp(setting.value, "4") == 0;
  }
  CHECK(found);
  weft_libfabric libfabric = {.size = sizeof libfabric};
  OK(weft_info_libfabric(info, &libfabric, &error));
  CHECK((strlen(libfabric.version) > 0) == (strlen(libfabric.file) > 0));
  CHECK(libfabric.found != NULL && libfabric.warning != NULL);
  INVALID(weft_info_libfabric(info, NULL, &error));
  INVALID(weft_info_rail(info, 1000, &rail, &error));
  INVALID(weft_info_rail(info, 0, NULL, &error));
  rail.size = 0;
  INVALID(weft_info_rail(info, 0, &rail, &error));
  weft_info_free(info);

  OK(weft_discover(NULL, &info, &error));
  CHECK(weft_info_rail_count(info) == 0 && weft_info_candidate_count(info) >= 1);
  bool some_taken = false;
  for (size_t i = 0; i < weft_info_candidate_count(info); ++i) {
    weft_candidate candidate = {.size = sizeof candidate};
    OK(weft_info_candidate(info, i, &candidate, &error));
    CHECK(strlen(candidate.provider) > 0 && strlen(candidate.reason) > 0);
    some_taken = some_taken || candidate.taken;
  }
  CHECK(some_taken);
  OK(weft_info_libfabric(info, &libfabric, &error));
  CHECK((strlen(libfabric.version) > 0) != (strlen(libfabric.problem) > 0));
  INVALID(weft_info_candidate(info, 0, NULL, &error));
  weft_info_free(info);
}

static void metrics(void) {
  weft_text* text = NULL;
  OK(weft_engine_metrics_text(engine, &text, &error));
  CHECK(strstr(weft_text_get(text), "\nweft_peers_up ") != NULL);
  weft_text_free(text);
  OK(weft_engine_snapshot(engine, &text, &error));
  CHECK(weft_text_get(text)[0] == '{');
  weft_text_free(text);
  CHECK(strcmp(weft_engine_metrics_address(engine), "") == 0);

  weft_config* config = config_with("metrics_listen", "127.0.0.1:0");
  weft_engine* serving = NULL;
  OK(weft_engine_open(config, &serving, &error));
  CHECK(strncmp(weft_engine_metrics_address(serving), "127.0.0.1:", 10) == 0);
  weft_engine_free(serving);
  OK(weft_config_set(config, "metrics", "false", &error));
  INVALID(weft_engine_open(config, &no_engine, &error));
  OK(weft_config_set(config, "metrics_listen", "", &error));
  weft_engine* silent = NULL;
  OK(weft_engine_open(config, &silent, &error));
  weft_config_free(config);
  REFUSED(WEFT_UNAVAILABLE, weft_engine_metrics_text(silent, &text, &error));
  REFUSED(WEFT_UNAVAILABLE, weft_engine_snapshot(silent, &text, &error));
  weft_engine_free(silent);
}

static void names(void) {
  CHECK(weft_version()[0] >= '0' && weft_version()[0] <= '9');
  CHECK(strcmp(weft_code_name(WEFT_OK), "ok") == 0);
  CHECK(strcmp(weft_code_name(WEFT_TIMED_OUT), "timed_out") == 0);
  CHECK(strcmp(weft_code_name(WEFT_INTERNAL), "internal") == 0);
  CHECK(strcmp(weft_code_name(WEFT_CORRUPT), "corrupt") == 0);
  CHECK(strcmp(weft_code_name(WEFT_POLICY_REFUSED), "policy_refused") == 0);
  CHECK(strcmp(weft_code_name(WEFT_POLICY_REFUSED + 1), "unknown") == 0);
  CHECK(strcmp(weft_code_name(99), "unknown") == 0 && strcmp(weft_code_name(-1), "unknown") == 0);
  CHECK(strcmp(weft_state_name(WEFT_STATE_DONE), "done") == 0);
  CHECK(strcmp(weft_state_name(256), "unknown") == 0);
}

static void count_lines(void* context, int32_t level, const char* line) {
  CHECK(level >= WEFT_LOG_DEBUG && level < WEFT_LOG_OFF && strlen(line) > 0);
  ++*(atomic_int*)context;
}

/* The engine of all tests, connected to a second one; the log tells of it. */
static weft_engine* set_up(void) {
  atomic_int lines = 0;
  OK(weft_set_log_sink(count_lines, &lines, &error));
  OK(weft_set_log_level(WEFT_LOG_DEBUG, &error));
  OK(weft_engine_open(NULL, &engine, &error));
  weft_engine* other = NULL;
  OK(weft_engine_open(NULL, &other, &error));
  OK(weft_engine_connect(engine, weft_engine_address(other), patience, &peer, &error));
  weft_peer* back = NULL;
  OK(weft_engine_accept(other, patience, &back, &error));
  weft_peer_free(back);
  OK(weft_set_log_level(WEFT_LOG_WARNING, &error));
  OK(weft_set_log_sink(NULL, NULL, &error));
  CHECK(lines > 0);
  INVALID(weft_set_log_level(WEFT_LOG_OFF + 1, &error));
  INVALID(weft_set_log_level(-1, &error));

  OK(weft_engine_add_own(engine, 4096, &segment, &error));
  OK(weft_segment_grant(segment, NULL, 0, WEFT_RIGHT_READ_WRITE, 0, WEFT_KEYS_AUTOMATIC, &grant,
                        &error));
  weft_segment* theirs = NULL;
  weft_grant* granted = NULL;
  OK(weft_engine_add_own(other, 4096, &theirs, &error));
  OK(weft_segment_grant(theirs, NULL, 0, WEFT_RIGHT_READ_WRITE, 0, WEFT_KEYS_AUTOMATIC, &granted,
                        &error));
  OK(weft_engine_import(engine, weft_grant_blob(granted), weft_grant_blob_size(granted), &remote,
                        &error));
  weft_grant_free(granted);
  weft_segment_free(theirs); /* the grant keeps the memory */
  return other;
}

/* In the kernel's place, for a NIC of that name. */
static void put_counters(const char* folder, const char* nic) {
  char path[512];
  const char* const levels[] = {"class", "infiniband", nic, "ports", "1", "hw_counters"};
  size_t length = (size_t)snprintf(path, sizeof path, "%s", folder);
  for (size_t i = 0; i < COUNT_OF(levels); ++i) {
    length += (size_t)snprintf(path + length, sizeof path - length, "/%s", levels[i]);
    CHECK(mkdir(path, 0700) == 0);
  }
  const char* const files[] = {"tx_bytes 1\n", "rdma_write_bytes 3\n", "rdma_read_resp_bytes 6\n"};
  for (size_t i = 0; i < COUNT_OF(files); ++i) {
    const char* value = strchr(files[i], ' ') + 1;
    snprintf(path + length, sizeof path - length, "/%.*s", (int)(value - 1 - files[i]), files[i]);
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fputs(value, file) >= 0 && fclose(file) == 0);
  }
}

static int remove_it(const char* path, const struct stat* about, int kind, struct FTW* walk) {
  (void)about, (void)kind, (void)walk;
  return remove(path);
}

static void nic_counters(void) {
  weft_info* info = NULL;
  weft_rail_info rail = {.size = sizeof rail};
  OK(weft_engine_info(engine, &info, &error));
  OK(weft_info_rail(info, 0, &rail, &error));
  weft_nics* nics = NULL;
  OK(weft_engine_nic_counters(engine, &nics, &error));
  CHECK(weft_nics_count(nics) == 0);
  weft_nic_counters counters = {.size = sizeof counters};
  INVALID(weft_nics_counters(nics, 0, &counters, &error));
  weft_nics_free(nics);

  char folder[] = "/tmp/weft-capi-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  put_counters(folder, rail.domain);
  CHECK(setenv("SYSFS_PATH", folder, 1) == 0);
  OK(weft_engine_nic_counters(engine, &nics, &error));
  CHECK(unsetenv("SYSFS_PATH") == 0);
  CHECK(nftw(folder, remove_it, 8, FTW_DEPTH | FTW_PHYS) == 0);
  CHECK(weft_nics_count(nics) == 1);
  OK(weft_nics_counters(nics, 0, &counters, &error));
  CHECK(counters.size == sizeof counters && strcmp(counters.nic, rail.domain) == 0);
  CHECK(counters.sent == 1 && counters.written == 3 && counters.read_by_peers == 6);
  CHECK(counters.received == WEFT_NOT_COUNTED && counters.read == WEFT_NOT_COUNTED);
  CHECK(counters.written_by_peers == WEFT_NOT_COUNTED);
  CHECK(counters.messages_sent == WEFT_NOT_COUNTED);
  CHECK(counters.messages_received == WEFT_NOT_COUNTED);
  CHECK(strcmp(weft_nics_rail(nics, 0, 0), rail.name) == 0);
  size_t over_it = 0;
  for (size_t i = 0; i < weft_info_rail_count(info); ++i) {
    OK(weft_info_rail(info, i, &rail, &error));
    over_it += strcmp(rail.domain, counters.nic) == 0 ? 1 : 0;
  }
  CHECK(counters.rail_count == over_it);
  CHECK(!weft_nics_rail(nics, 0, counters.rail_count) && !weft_nics_rail(nics, 1, 0));
  INVALID(weft_nics_counters(nics, 1, &counters, &error));
  INVALID(weft_nics_counters(nics, 0, NULL, &error));
  counters.size = 0;
  INVALID(weft_nics_counters(nics, 0, &counters, &error));
  weft_nics_free(nics);
  weft_info_free(info);
}

int main(void) {
  frees_take_null();
  getters_take_null();
  names();
  configurations();
  table_of_options();
  weft_engine* other = set_up();
  engines_refuse_null();
  memory_refuses_null();
  transfers_refuse_null();
  messages_refuse_null();
  hopeless_wishes();
  descriptions();
  metrics();
  nic_counters();
  weft_remote_free(remote);
  weft_grant_free(grant);
  weft_segment_free(segment);
  weft_peer_free(peer);
  weft_engine_free(other);
  weft_engine_free(engine);
  return 0;
}
