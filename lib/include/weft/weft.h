/// @file
/// Weft's C API: the same library for C and for every language that can call C.
///
/// Conventions, which hold for every function unless it says otherwise:
///
/// - **Handles** (`weft_engine *`, `weft_peer *`, ...) are made by one function, belong to the
///   caller, and are given back with the `_free` function of their type, which takes NULL too. They
///   may be freed in any order, also after their engine: what needs a closed engine then fails with
///   WEFT_CLOSED.
/// - **Failure** is a status: 0 (WEFT_OK) or one of the other codes. Functions that return one
///   take a `weft_error **` last. Where that is not NULL, it is set to NULL on success and to an
///   error that the caller frees on failure. All other output parameters keep their values on
///   failure.
/// - **Bad arguments**, NULL where a value is needed among them, give WEFT_INVALID_ARGUMENT.
///   Functions that return no status return 0, false, NULL or -1 (a descriptor or state) for a NULL
///   handle, and for an index out of range.
/// - **Pointers returned** point into the handle they were asked from and are valid until it is
///   freed. Strings end with a zero byte. Nothing that a caller passes in is kept after the call,
///   except adopted memory, callbacks and their contexts.
/// - **Timeouts** are in nanoseconds from now. 0 and negative ones look once and do not wait; all
///   are cut to one day. No call waits without end.
/// - **Threads**: all calls may be made from any thread, also with the same handle, as long as
///   nobody frees it meanwhile. One weft_expectation or weft_receive is waited for by one thread at
///   a time.
/// - **Structs that begin with `size`** may grow in later versions. Set `size` to `sizeof` the
///   struct and every other member that you don't need to zero, which means the default;
///   weft_config has defaults that are not zero and an initialiser. Members that a program's header
///   knows and the library does not must be zero. All other structs stay as they are.
/// - No exception leaves a function, and no callback may throw one.
///
/// Writing a piece of memory into another process's, with most checks left out:
///
/// @code
/// weft_engine *engine = NULL;
/// weft_error *error = NULL;
/// if (weft_engine_open(NULL, &engine, &error) != WEFT_OK) {
///   fprintf(stderr, "%s\n", weft_error_string(error));
///   weft_error_free(error);
///   return 1;
/// }
/// weft_engine_connect(engine, "127.0.0.1:7000", second, &peer, &error);
/// weft_engine_add_own(engine, 1 << 20, &segment, &error);
/// weft_engine_lookup(engine, peer, "kv", second, &remote, &error);
/// weft_pair pairs[] = {{.local = 0, .remote = 4096, .length = 65536}};
/// weft_transfer_options options = {.size = sizeof options, .signal = true, .signal_id = 7};
/// weft_engine_write(engine, segment, remote, pairs, 1, &options, &transfer, &error);
/// if (weft_transfer_wait(transfer, second, &error) == WEFT_OK) puts("it is there");
/// @endcode
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the library in use, e.g. "0.1.0". Lives as long as the program.
WEFT_API const char* weft_version(void);

/// @name Errors
/// @{

/// WEFT_OK or what went wrong, in one word that a program can switch on.
typedef int32_t weft_code;

enum {
  WEFT_OK = 0,
  WEFT_INVALID_ARGUMENT = 1,    ///< The call itself is wrong: a NULL, a range outside its segment.
  WEFT_NOT_FOUND = 2,           ///< No such name, model, peer or rail.
  WEFT_UNSUPPORTED = 3,         ///< This build, machine or provider can't do it.
  WEFT_UNAVAILABLE = 4,         ///< It exists but can't be had now: no rail, a closed port.
  WEFT_PERMISSION_DENIED = 5,   ///< The grant lacks the right, or the system or a peer refused.
  WEFT_OUT_OF_MEMORY = 6,       ///< Memory, huge pages or locked memory (memlock) ran out.
  WEFT_QUEUE_FULL = 7,          ///< Too much is queued; collect completions and try again.
  WEFT_TIMED_OUT = 8,           ///< The deadline passed first.
  WEFT_CANCELLED = 9,           ///< The caller cancelled it.
  WEFT_STALE = 10,              ///< Of an earlier incarnation, or a grant that holds no more.
  WEFT_PEER_DOWN = 11,          ///< The peer is gone or was never up.
  WEFT_PROTOCOL_MISMATCH = 12,  ///< The other side speaks another version, or something else.
  WEFT_FABRIC_FAILED = 13,      ///< libfabric reported an error: weft_error_fabric_code().
  WEFT_REMOTE_FAILED = 14,      ///< The other side reported why it failed.
  WEFT_QUARANTINED = 15,        ///< Can't be proven safe to reuse; kept out of use.
  WEFT_CLOSED = 16,             ///< The engine was closed.
  WEFT_FORKED = 17,             ///< Called in a child of the process that opened the engine.
  WEFT_INTERNAL = 18,           ///< A broken invariant of Weft itself: please report it.
  WEFT_CORRUPT = 19,            ///< The bytes at the two ends of a transfer differ.
  WEFT_POLICY_REFUSED = 20      ///< A policy does not allow the path of a transfer.
};

/// A code's name in lower case, e.g. "timed_out"; "ok" for 0. Lives as long as the program.
WEFT_API const char* weft_code_name(weft_code code);

/// Why a call failed: a code for the program, a sentence for a person, and the context.
typedef struct weft_error weft_error;

WEFT_API void weft_error_free(weft_error* error);
WEFT_API weft_code weft_error_code(const weft_error* error);
/// One sentence without the context below.
WEFT_API const char* weft_error_message(const weft_error* error);
/// Name of the peer concerned; empty where there is none.
WEFT_API const char* weft_error_peer(const weft_error* error);
/// Name of the rail concerned; empty where there is none.
WEFT_API const char* weft_error_rail(const weft_error* error);
/// The operation that failed, e.g. "write" or "fi_mr_reg"; empty where there is none.
WEFT_API const char* weft_error_operation(const weft_error* error);
/// libfabric's positive error number (rdma/fi_errno.h); 0 where libfabric is not the cause.
WEFT_API int weft_error_fabric_code(const weft_error* error);
/// Code, sentence and context on one line, for logs and terminals.
WEFT_API const char* weft_error_string(const weft_error* error);
/// @}

/// @name Log
/// @{
enum {
  WEFT_LOG_DEBUG = 0,
  WEFT_LOG_INFO = 1,
  WEFT_LOG_WARNING = 2,
  WEFT_LOG_ERROR = 3,
  WEFT_LOG_OFF = 4  ///< As a level to set: no lines at all.
};

/// Takes a log line of a WEFT_LOG_ level; `line` is valid during the call only. Called from any
/// thread, one call at a time; it must not call back into Weft.
typedef void (*weft_log_sink)(void* context, int32_t level, const char* line);

/// Sends log lines to `sink` instead of standard error; NULL restores that. When it returns, the
/// sink before is not called any more.
WEFT_API weft_code weft_set_log_sink(weft_log_sink sink, void* context, weft_error** error);
/// Lines below `level` are not made. Default: warning, or the environment variable WEFT_LOG (debug,
/// info, warning, error, off).
WEFT_API weft_code weft_set_log_level(int32_t level, weft_error** error);
/// @}

/// @name Handles
/// @{
typedef struct weft_engine weft_engine;            ///< Rails, threads and peers of a process.
typedef struct weft_info weft_info;                ///< A snapshot of an engine or of a discovery.
typedef struct weft_text weft_text;                ///< Text that the library has made.
typedef struct weft_nics weft_nics;                ///< What an engine's NICs have counted.
typedef struct weft_peer weft_peer;                ///< Another engine, once met.
typedef struct weft_segment weft_segment;          ///< Registered local memory.
typedef struct weft_grant weft_grant;              ///< The right of peers to a segment's ranges.
typedef struct weft_remote weft_remote;            ///< A peer's grant, imported.
typedef struct weft_prepared weft_prepared;        ///< Pieces, checked once, submitted often.
typedef struct weft_transfer weft_transfer;        ///< One batch of pieces on its way.
typedef struct weft_expectation weft_expectation;  ///< Signals that are waited for.
typedef struct weft_receive weft_receive;          ///< A message that was asked for.
/// @}

/// @name Engines
/// @{

/// Who drives the rails.
enum {
  WEFT_PROGRESS_THREADS = 0,  ///< The engine's own threads.
  WEFT_PROGRESS_MANUAL = 1    ///< The caller: weft_engine_progress(), and inside every wait.
};

/// Which kind of transport carries the bytes.
enum {
  WEFT_TRANSPORT_AUTOMATIC = 0,   ///< One-sided where a NIC reaches both memories, else the relay.
  WEFT_TRANSPORT_ONE_SIDED = 1,   ///< RMA straight between the two segments.
  WEFT_TRANSPORT_RELAY = 2,       ///< Messages through bounce buffers: two more copies.
  WEFT_TRANSPORT_DEVICE_COPY = 3  ///< A GPU's copy engine, from GPU to GPU of one host.
};

/// Which transfers to a peer go before which others. Within one class whoever has the earliest
/// deadline goes first, and transfers of one deadline take turns. No class starves: where all want
/// to go, each has a sixteenth of the bytes at least.
enum {
  WEFT_PRIORITY_LATENCY = -1,  ///< Somebody waits for it.
  WEFT_PRIORITY_NORMAL = 0,
  WEFT_PRIORITY_BULK = 1  ///< Whenever there is nothing better to do.
};

/// How an engine is set up. Call weft_config_init() first, then change what you need. Strings that
/// are NULL mean the default. Each field but `size` can also be given from outside the program:
/// what the program leaves at its default is taken from the environment (WEFT_RAIL_ADDRESS), else
/// from a TOML file (rail_address = "10.0.0.7").
typedef struct weft_config {
  size_t size;  ///< Set by weft_config_init().
  /// The TOML file. Default: the one that WEFT_CONFIG_FILE names, if it is set.
  const char* config_file;
  /// The engine's identity towards its peers, at most 255 bytes. Default: made of host name,
  /// process and random digits. A name used again means the same service restarted.
  const char* name;
  /// Where peers reach this engine: "127.0.0.1:0" (default), "[::1]:7000", "host:7000". Port 0 lets
  /// the system choose (weft_engine_address() tells). "": this engine only connects to others.
  const char* listen;
  /// The address told to peers where it differs from the one listened on (NAT, 0.0.0.0).
  const char* advertise;
  /// Local IP address whose interface carries the tcp rails. Default: that of `advertise`, else of
  /// `listen`, else loopback.
  const char* rail_address;
  /// Names of providers to use, best first: "shm", "efa", "verbs", "tcp", "fi_shm", or libfabric's
  /// names for ways to have one ("tcp;ofi_rxm", "efa-direct"); "^tcp" forbids one. No names: all
  /// but fi_shm and those forbidden.
  const char* const* providers;
  size_t provider_count;
  /// Names or patterns of NICs to use, best first ("rdmap*"); "^eth0" forbids one. None: the
  /// nearest.
  const char* const* nics;
  size_t nic_count;
  uint32_t max_nics;     ///< Most NICs of one provider, unless `nics` names them.
  bool allow_emulation;  ///< Use NICs whose reads or writes are built out of messages.
  /// Listening beyond loopback without authentication has to be asked for.
  bool allow_unauthenticated_network;
  /// Put an event into the queue when a peer comes up or goes down.
  bool peer_events;
  int32_t progress;             ///< A WEFT_PROGRESS_ value.
  int32_t transport;            ///< A WEFT_TRANSPORT_ value, for transfers that name none.
  uint32_t rails;               ///< Per NIC. 0: as many as measured best for the cores at hand.
  uint32_t threads;             ///< For progress. 0: one per rail, at most one per core.
  int64_t spin_ns;              ///< How long an idle progress thread polls before it sleeps.
  uint64_t chunk_bytes;         ///< Most bytes per operation; 0: the rail's own best.
  uint64_t window;              ///< Operations in flight per rail and peer; 0: the best.
  uint64_t relay_buffer_bytes;  ///< Size of one of the relay's bounce buffers.
  uint64_t relay_buffers;       ///< Bounce buffers for each rail, peer and way.
  uint64_t max_message;         ///< Largest message or signal payload accepted (up to 1 MiB).
  uint64_t message_credits;     ///< Messages that a peer may have under way (2 to 1024).
  uint64_t unclaimed_bytes;     ///< Signals and messages nobody asked for yet, bytes per peer.
  uint64_t send_queue;          ///< Messages waiting to be sent, per peer.
  uint64_t max_transfers;       ///< Transfers under way, and events not yet polled.
  int64_t default_timeout_ns;   ///< Of a transfer that names none.
  int64_t heartbeat_ns;         ///< Interval of heartbeats between peers.
  int64_t death_after_ns;       ///< The silence that means death.
  /// PCI addresses of the GPUs whose memory this process moves ("0000:53:00.0"): the NICs that
  /// serve them are opened, up to `max_nics` for each. None: those nearest to the process's cores.
  const char* const* gpus;
  size_t gpu_count;
  /// A file with the machine's topology in hwloc's XML, for use instead of this machine's.
  const char* topo_xml;
  bool register_everywhere;  ///< Memory is registered with all rails, not only the nearest.
  bool place_threads;        ///< Progress threads keep to cores: weft::Config says when.
  /// With a secret or with certificates, of which an engine may have one, control connections are
  /// TLS 1.3, both sides prove themselves before anything else is said, and the engine may listen
  /// beyond loopback. What the rails carry is not encrypted by it.
  /// A file, closed to others than its owner and group, with the secret that all engines have which
  /// may meet: 16 bytes at least, best 32 random ones in text.
  const char* secret_file;
  /// PEM files, all three or none: this engine's certificate, its key (closed to others than its
  /// owner and group), and the authorities any of whose certificates makes a member.
  const char* tls_certificate;
  const char* tls_key;
  const char* tls_authorities;
  bool tls_check_host;  ///< The other's certificate must name the host that is connected to.
  /// What the paths of transfers must be like, as text: "max_copies=0,forbid_cpu_copies,
  /// require_gpudirect,min_gbps=100,providers=efa+verbs", any of these. Of all transfers; providers
  /// that it does not allow are not opened.
  const char* policy;
  /// The same of those of class latency, and of class bulk (the WEFT_PRIORITY_ values).
  const char* latency_policy;
  const char* bulk_policy;
  /// The same by the names of peers: "NAME: POLICY; NAME: POLICY".
  const char* peer_policies;
  /// Processes of this host may map the GPU memory that they are granted, and this process maps
  /// theirs: see weft::Config::share_gpu_memory.
  bool share_gpu_memory;
  /// Where the metrics can also be read over HTTP, without authentication: "127.0.0.1:9400" (port 0
  /// lets the system choose: weft_engine_metrics_address() tells), "unix:PATH"; /metrics and
  /// /snapshot. Beyond loopback only with allow_unauthenticated_network. Default: nowhere.
  const char* metrics_listen;
  bool metrics_off;  ///< Ended transfers are not counted, and there are no metrics to read.
  /// Most bytes of a transfer, in up to 16 pieces, that may be copied before the call that submits
  /// it returns: see weft::Config::copy_at_once_bytes.
  uint64_t copy_at_once_bytes;
} weft_config;

/// Fills in the defaults. `size` is sizeof(weft_config) as the caller's header has it. Does nothing
/// if `config` is NULL or `size` is smaller than the struct ever was.
WEFT_API void weft_config_init(weft_config* config, size_t size);

/// Opens rails and starts listening. `config` may be NULL: all defaults.
WEFT_API weft_code weft_engine_open(const weft_config* config, weft_engine** engine,
                                    weft_error** error);
/// Tells peers, ends all transfers as closed, stops the threads. WEFT_QUARANTINED if something
/// could not be closed in time. The handle remains and is to be freed.
WEFT_API weft_code weft_engine_close(weft_engine* engine, int64_t timeout_ns, weft_error** error);
/// Closes the engine within two seconds if it is still open. What can't be closed by then is
/// abandoned with its memory still mapped.
WEFT_API void weft_engine_free(weft_engine* engine);

WEFT_API const char* weft_engine_name(const weft_engine* engine);
/// What peers pass to weft_engine_connect(); empty if the engine does not listen.
WEFT_API const char* weft_engine_address(const weft_engine* engine);
/// @}

/// @name What an engine is made of
/// @{

/// A rail: one NIC or interface with its endpoint.
typedef struct weft_rail_info {
  size_t size;
  const char* name;               ///< E.g. "tcp:0".
  const char* provider;           ///< libfabric's name, e.g. "net".
  const char* libfabric_version;  ///< Of the library in use.
  const char* domain;             ///< NIC or interface, e.g. "rdmap79s0", "lo".
  uint32_t thread;                ///< Index of the progress thread that owns it.
  bool same_host_only;            ///< Reaches processes of this machine only.
  uint64_t operations;            ///< Completed since it was opened.
  uint64_t bytes;
  uint64_t in_flight;
  uint64_t lost;         ///< Operations whose peer died and that never came back.
  uint64_t max_message;  ///< Most bytes in one operation.
  uint64_t window;       ///< Most operations that the provider takes at a time.
  double gbps;           ///< Link speed in Gb/s; 0 where unknown.
  bool emulated_write;   ///< Writes are built out of messages, and the target's CPU copies.
  bool emulated_read;
  uint32_t copies;    ///< Of each byte, made by the provider on both sides together.
  const char* pci;    ///< Of the NIC, "0000:4f:00.0"; "": unknown, or none.
  int32_t numa_node;  ///< Of the NIC; -1 where it can't be told.
} weft_rail_info;

/// A NIC or interface that was looked at when rails were chosen.
typedef struct weft_candidate {
  size_t size;
  const char* provider;
  const char* domain;
  const char* fabric;
  const char* reason;  ///< Why it was taken or passed over, as a sentence.
  bool taken;
} weft_candidate;

/// An option of weft_config as the engine uses it, and where its value came from.
typedef struct weft_setting {
  size_t size;
  const char* name;
  const char* value;  ///< As it would be written in the environment.
  int32_t source;     ///< A WEFT_SOURCE_ value.
  const char* place;  ///< "WEFT_PROVIDERS", "weft.toml:3"; empty for the other two.
} weft_setting;

/// Where the value of an option came from.
enum {
  WEFT_SOURCE_DEFAULT = 0,
  WEFT_SOURCE_FILE = 1,
  WEFT_SOURCE_ENVIRONMENT = 2,
  WEFT_SOURCE_CALL = 3,
};

/// A snapshot of the engine: its rails with their counters, and what they were chosen from.
WEFT_API weft_code weft_engine_info(const weft_engine* engine, weft_info** info,
                                    weft_error** error);
/// Looks for providers and NICs without opening anything: what weft_engine_open() would take. The
/// result has candidates only. `config` may be NULL.
WEFT_API weft_code weft_discover(const weft_config* config, weft_info** info, weft_error** error);
WEFT_API void weft_info_free(weft_info* info);
/// Changes each time an engine is opened; 0 for a discovery.
WEFT_API uint64_t weft_info_incarnation(const weft_info* info);
WEFT_API uint64_t weft_info_transfers_active(const weft_info* info);
WEFT_API uint64_t weft_info_segments(const weft_info* info);
WEFT_API size_t weft_info_rail_count(const weft_info* info);
/// Fills `rail`, whose `size` must be set. Its strings belong to `info`.
WEFT_API weft_code weft_info_rail(const weft_info* info, size_t index, weft_rail_info* rail,
                                  weft_error** error);
WEFT_API size_t weft_info_candidate_count(const weft_info* info);
WEFT_API size_t weft_info_setting_count(const weft_info* info);
/// Fills `setting`, whose `size` must be set. Its strings belong to `info`.
WEFT_API weft_code weft_info_setting(const weft_info* info, size_t index, weft_setting* setting,
                                     weft_error** error);
/// Why a slower way is taken than this machine seems to have; "" if none is. Belongs to `info`.
WEFT_API const char* weft_info_fallback(const weft_info* info);
/// Fills `candidate`, whose `size` must be set. Its strings belong to `info`.
WEFT_API weft_code weft_info_candidate(const weft_info* info, size_t index,
                                       weft_candidate* candidate, weft_error** error);
/// @}

/// @name Metrics
/// @{

/// What ended transfers came to since the engine was opened, and how its rails and peers stand now,
/// in Prometheus's text format, version 0.0.4. WEFT_UNAVAILABLE where metrics are off.
WEFT_API weft_code weft_engine_metrics_text(const weft_engine* engine, weft_text** text,
                                            weft_error** error);
/// The same, and the slowest transfers of the last one to two minutes, as one JSON document.
WEFT_API weft_code weft_engine_snapshot(const weft_engine* engine, weft_text** text,
                                        weft_error** error);
/// Where `metrics_listen` came to listen; "" if it is nowhere.
WEFT_API const char* weft_engine_metrics_address(const weft_engine* engine);
/// Its bytes, with a zero behind them. Belongs to `text`.
WEFT_API const char* weft_text_get(const weft_text* text);
WEFT_API void weft_text_free(weft_text* text);

/// A count that a NIC's driver does not tell.
#define WEFT_NOT_COUNTED UINT64_MAX

/// Bytes that went over an RDMA NIC since its driver was started, for all processes together.
/// WEFT_NOT_COUNTED: its driver does not tell, or the kernel not now. EFA tells all of them;
/// InfiniBand and RoCE, as a rule, `sent` and `received` alone.
typedef struct weft_nic_counters {
  size_t size;
  const char* nic;            ///< As weft_rail_info::domain: "rdmap79s0".
  size_t rail_count;          ///< This engine's rails over it: weft_nics_rail().
  uint64_t sent, received;    ///< Of whatever kind.
  uint64_t written;           ///< By RDMA: what it wrote at its peers,
  uint64_t written_by_peers;  ///< and they at it;
  uint64_t read;              ///< what it read at its peers,
  uint64_t read_by_peers;     ///< and they at it.
  uint64_t messages_sent;     ///< Of send and receive.
  uint64_t messages_received;
} weft_nic_counters;

/// What the RDMA NICs below the rails have counted: one for each, in the order of their first
/// rails; none if there are none, or a container hides them. Reads files, for which a driver may
/// ask its device: not for callbacks.
WEFT_API weft_code weft_engine_nic_counters(const weft_engine* engine, weft_nics** nics,
                                            weft_error** error);
WEFT_API void weft_nics_free(weft_nics* nics);
WEFT_API size_t weft_nics_count(const weft_nics* nics);
/// Fills `counters`, whose `size` must be set. Its strings belong to `nics`.
WEFT_API weft_code weft_nics_counters(const weft_nics* nics, size_t index,
                                      weft_nic_counters* counters, weft_error** error);
/// The name of one of the rails over one of the NICs; NULL if there is no such. Belongs to `nics`.
WEFT_API const char* weft_nics_rail(const weft_nics* nics, size_t index, size_t rail);
/// @}

/// @name Peers
/// @{

/// Meets the engine at "host:port". Both engines may connect: it is one peer. A handle stays valid
/// when the peer is gone; a peer that comes back is a new one.
WEFT_API weft_code weft_engine_connect(weft_engine* engine, const char* address, int64_t timeout_ns,
                                       weft_peer** peer, weft_error** error);
/// The same, and again whenever the peer is gone, until weft_engine_disconnect(): a peer that comes
/// back is a new handle, by weft_engine_peer().
WEFT_API weft_code weft_engine_keep_connected(weft_engine* engine, const char* address,
                                              int64_t timeout_ns, weft_peer** peer,
                                              weft_error** error);
/// The peer of that name, as soon as it is up.
WEFT_API weft_code weft_engine_peer(weft_engine* engine, const char* name, int64_t timeout_ns,
                                    weft_peer** peer, weft_error** error);
/// Waits for the next peer that connected to this engine and was not returned before.
WEFT_API weft_code weft_engine_accept(weft_engine* engine, int64_t timeout_ns, weft_peer** peer,
                                      weft_error** error);
/// Makes handles of the peers that are up, as many as `capacity` allows, and puts their number into
/// `count`: each handle is to be freed. `peers` may be NULL where `capacity` is 0: then `count` is
/// the number of all peers that are up.
WEFT_API weft_code weft_engine_peers(const weft_engine* engine, weft_peer** peers, size_t capacity,
                                     size_t* count, weft_error** error);
/// Says goodbye; transfers with the peer fail.
WEFT_API weft_code weft_engine_disconnect(weft_engine* engine, const weft_peer* peer,
                                          weft_error** error);
/// Closes a rail (weft_info_rail) and opens it again, so that nothing that was posted over it
/// by either side touches memory any more: for a NIC that neither completes nor fails what it was
/// given, or to fence off a peer that is gone. What this engine had out over it is carried out
/// anew; what peers had, fails. WEFT_TIMED_OUT if that did not come to an end in time: the rail is
/// out of use until it does. WEFT_UNSUPPORTED over shared memory. A GPU's memory that the rail
/// can't register any more is staged on it from then on.
WEFT_API weft_code weft_engine_reopen(weft_engine* engine, const char* rail, int64_t timeout_ns,
                                      weft_error** error);

WEFT_API void weft_peer_free(weft_peer* peer);
WEFT_API const char* weft_peer_name(const weft_peer* peer);
/// Changes each time the engine of that name is opened.
WEFT_API uint64_t weft_peer_incarnation(const weft_peer* peer);
WEFT_API bool weft_peer_up(const weft_peer* peer);
/// WEFT_OK while the peer is up; afterwards the error that says why it is down.
WEFT_API weft_code weft_peer_check(const weft_peer* peer, weft_error** error);
/// Whether both engines were proven to be on one machine.
WEFT_API bool weft_peer_same_host(const weft_peer* peer);
/// Its control address as advertised.
WEFT_API const char* weft_peer_address(const weft_peer* peer);
/// Number of local rails that transfers to this peer use.
WEFT_API size_t weft_peer_rail_count(const weft_peer* peer);
/// The name of one of them, e.g. "shm:0".
WEFT_API const char* weft_peer_rail(const weft_peer* peer, size_t index);
/// Why these rails, and why not better ones, as a sentence.
WEFT_API const char* weft_peer_route_reason(const weft_peer* peer);
/// Why a slower way is taken than one of the two has or seems to have; "" if none is.
WEFT_API const char* weft_peer_fallback(const weft_peer* peer);
/// @}

/// @name Memory
/// @{

/// Who owns the bytes.
enum { WEFT_MEMORY_HOST = 0, WEFT_MEMORY_DEVICE = 1 };

/// Where memory lies.
typedef struct weft_place {
  int32_t kind;       ///< A WEFT_MEMORY_ value.
  int32_t numa_node;  ///< -1 where it can't be told, or where pages lie on several nodes.
  int32_t device;     ///< The GPU that it is of or used with, counted in bus order; -1: none.
} weft_place;

/// A piece of a segment, in bytes from the segment's start.
typedef struct weft_range {
  uint64_t offset;
  uint64_t length;
} weft_range;

/// What a peer may do with granted memory.
enum { WEFT_RIGHT_READ = 1, WEFT_RIGHT_WRITE = 2, WEFT_RIGHT_READ_WRITE = 3 };

/// A segment of fresh zeroed pages that it owns.
WEFT_API weft_code weft_engine_add_own(weft_engine* engine, size_t bytes, weft_segment** segment,
                                       weft_error** error);
/// The same in huge pages (2 MiB); `bytes` is rounded up. WEFT_OUT_OF_MEMORY where the system has
/// none reserved.
WEFT_API weft_code weft_engine_add_huge(weft_engine* engine, size_t bytes, weft_segment** segment,
                                        weft_error** error);
/// Fresh zeroed pages behind a memfd, which other processes may map: weft_segment_fd().
WEFT_API weft_code weft_engine_add_shared(weft_engine* engine, size_t bytes, weft_segment** segment,
                                          weft_error** error);
/// Maps `bytes` of a file descriptor that supports mmap, from a page-aligned `offset`. The
/// descriptor is duplicated; the caller keeps its own.
WEFT_API weft_code weft_engine_add_map(weft_engine* engine, int fd, uint64_t offset, size_t bytes,
                                       weft_segment** segment, weft_error** error);
/// Memory of the caller's, which must stay mapped until weft_segment_release() has returned without
/// an error; freeing the handle is not enough.
WEFT_API weft_code weft_engine_adopt(weft_engine* engine, void* address, size_t bytes,
                                     weft_segment** segment, weft_error** error);

/// As weft_engine_add_own(), for memory that is used together with a GPU, such as a staging buffer:
/// it is moved by the NICs that serve the GPU at the PCI address `gpu` and by no others, and its
/// pages come from the GPU's node. WEFT_NOT_FOUND if there is no such GPU.
WEFT_API weft_code weft_engine_add_own_near(weft_engine* engine, size_t bytes, const char* gpu,
                                            weft_segment** segment, weft_error** error);
/// As weft_engine_adopt(), for such memory; its pages stay where they are.
WEFT_API weft_code weft_engine_adopt_near(weft_engine* engine, void* address, size_t bytes,
                                          const char* gpu, weft_segment** segment,
                                          weft_error** error);

/// Revokes all grants on the segment, waits until no transfer of this engine uses it, and
/// unregisters it. After WEFT_QUARANTINED or WEFT_TIMED_OUT the memory must not be reused.
WEFT_API weft_code weft_segment_release(weft_segment* segment, int64_t timeout_ns,
                                        weft_error** error);
/// Never blocks. Memory that a transfer or a grant still uses stays registered until that is over.
WEFT_API void weft_segment_free(weft_segment* segment);
/// Start of the memory in this process; NULL for device memory.
WEFT_API void* weft_segment_data(const weft_segment* segment);
WEFT_API uint64_t weft_segment_size(const weft_segment* segment);
WEFT_API weft_code weft_segment_place(const weft_segment* segment, weft_place* place,
                                      weft_error** error);
/// The descriptor behind shared or mapped memory, owned by the segment; -1 for other memory.
WEFT_API int weft_segment_fd(const weft_segment* segment);

/// Lets peers use `count` ranges of the segment (all of it if `count` is 0) for `ttl_ns` from now
/// (0: without end). `rights` is a WEFT_RIGHT_ value. When the time is over peers stop by
/// themselves, but the memory is free only after weft_grant_revoke() or weft_segment_release().
/// Freeing the handle ends nothing. What was read under a grant that has ended is WEFT_STALE.
WEFT_API weft_code weft_segment_grant(weft_segment* segment, const weft_range* ranges, size_t count,
                                      int32_t rights, int64_t ttl_ns, weft_grant** grant,
                                      weft_error** error);
WEFT_API void weft_grant_free(weft_grant* grant);
/// The grant in serialised form, some hundred bytes, for weft_engine_import() in the peer's
/// process. It holds no pointers; whoever has it can use it.
WEFT_API const void* weft_grant_blob(const weft_grant* grant);
WEFT_API size_t weft_grant_blob_size(const weft_grant* grant);
/// Identifies the grant within its engine.
WEFT_API uint64_t weft_grant_lease_id(const weft_grant* grant);
/// Ends the grant: transfers under it end as stale, and peers that may write stop, drain what they
/// have posted and confirm. WEFT_OK when the memory may be reused; WEFT_QUARANTINED if a peer did
/// not confirm in time: it stays registered and out of use. May be called again.
WEFT_API weft_code weft_grant_revoke(weft_grant* grant, int64_t timeout_ns, weft_error** error);
/// The same without waiting: closes the grant's keys, so that whatever peers have posted is refused
/// on arrival. WEFT_UNSUPPORTED where a rail can't cut off one grant alone.
WEFT_API weft_code weft_grant_fence(weft_grant* grant, int64_t timeout_ns, weft_error** error);
/// The same, but each rail that can't cut off one grant alone is closed and opened again, as by
/// weft_engine_reopen(), which hurts bystanders. WEFT_UNSUPPORTED where one can't be.
WEFT_API weft_code weft_grant_fence_rails(weft_grant* grant, int64_t timeout_ns,
                                          weft_error** error);

/// Reads a grant made by a connected peer. WEFT_STALE if that engine was restarted since.
WEFT_API weft_code weft_engine_import(weft_engine* engine, const void* blob, size_t bytes,
                                      weft_remote** remote, weft_error** error);
/// Makes a grant known under a name (at most 255 bytes) to every peer that asks; replaces an
/// earlier one of that name.
WEFT_API weft_code weft_engine_publish(weft_engine* engine, const char* name,
                                       const weft_grant* grant, weft_error** error);
/// Asks a peer for a grant by name, and waits until it is published there.
WEFT_API weft_code weft_engine_lookup(weft_engine* engine, const weft_peer* peer, const char* name,
                                      int64_t timeout_ns, weft_remote** remote, weft_error** error);

WEFT_API void weft_remote_free(weft_remote* remote);
/// Name of the engine that owns the memory.
WEFT_API const char* weft_remote_peer(const weft_remote* remote);
/// Size of the peer's segment, in bytes. Offsets count from its start.
WEFT_API uint64_t weft_remote_segment_size(const weft_remote* remote);
/// A WEFT_RIGHT_ value; 0 for NULL.
WEFT_API int32_t weft_remote_rights(const weft_remote* remote);
WEFT_API weft_code weft_remote_place(const weft_remote* remote, weft_place* place,
                                     weft_error** error);
/// What was granted, sorted by offset.
WEFT_API size_t weft_remote_range_count(const weft_remote* remote);
WEFT_API weft_code weft_remote_range(const weft_remote* remote, size_t index, weft_range* range,
                                     weft_error** error);
/// @}

/// @name Transfers
/// @{

enum {
  WEFT_WRITE = 0,  ///< From the local segment into the peer's.
  WEFT_READ = 1    ///< From the peer's segment into the local one.
};

/// One piece of a transfer: `length` bytes at offset `local` of the local segment and at offset
/// `remote` of the peer's. Pairs of one transfer must not overlap on the side that is written.
typedef struct weft_pair {
  uint64_t local;
  uint64_t remote;
  uint64_t length;
} weft_pair;

/// `count` pieces of equal length at constant distances, e.g. the same rows of two matrices.
typedef struct weft_strided {
  weft_pair first;
  uint64_t count;
  uint64_t local_stride;  ///< Bytes between the starts of neighbouring pieces.
  uint64_t remote_stride;
} weft_strided;

/// Pages of a paged cache: piece i is page `local_pages[i]` here and `remote_pages[i]` there. Page
/// p starts at `base + p * stride`. Both lists have `count` numbers.
typedef struct weft_paged {
  uint64_t page_bytes;
  uint64_t local_base;
  uint64_t local_stride;
  uint64_t remote_base;
  uint64_t remote_stride;
  const uint32_t* local_pages;
  const uint32_t* remote_pages;
  size_t count;
} weft_paged;

/// How a transfer stands. The last four are final, and a transfer reaches exactly one of them.
enum {
  WEFT_STATE_ACTIVE = 0,
  WEFT_STATE_DONE = 1,
  WEFT_STATE_FAILED = 2,
  WEFT_STATE_CANCELLED = 3,
  WEFT_STATE_TIMED_OUT = 4
};

/// A state's name in lower case, e.g. "done". Lives as long as the program.
WEFT_API const char* weft_state_name(int32_t state);

/// Called once at a transfer's end, on a progress thread or inside a call that makes progress or
/// waits for any: it must be short and must not wait for another transfer. `error` is NULL when
/// done, and otherwise valid during the call only: it is not to be freed.
typedef void (*weft_on_transfer)(void* context, uint64_t cookie, int32_t state,
                                 const weft_error* error);

typedef struct weft_transfer_options {
  size_t size;
  /// When to give up. 0: weft_config::default_timeout_ns. Negative: at once.
  int64_t timeout_ns;
  uint64_t cookie;          ///< Returned in the callback and the event.
  bool event;               ///< Put an event into the engine's queue at the end.
  bool signal;              ///< Raise a signal at the target once all bytes are visible there.
  uint64_t signal_id;       ///< Chosen by the application; the peer expects the same number.
  const void* signal_data;  ///< Bytes that the signal carries; copied at the call.
  size_t signal_bytes;      ///< At most weft_config::max_message.
  weft_on_transfer on_end;  ///< May be NULL.
  void* context;            ///< Passed to `on_end`.
  int32_t transport;        ///< A WEFT_TRANSPORT_ value.
  /// Where weft_config::max_transfers are under way already, how long to wait until one of them has
  /// ended; 0: not at all. In a callback it never waits.
  int64_t wait_for_room_ns;
  int32_t priority;  ///< A WEFT_PRIORITY_ value.
  /// Compare the bytes at both ends, by their XXH3, before the end and before the signal goes out;
  /// if they differ the transfer fails as WEFT_CORRUPT. Nobody may change them meanwhile.
  bool verify;
  /// What the path must be like, as weft_config::policy, besides what that asks for; else it fails
  /// at the call as WEFT_POLICY_REFUSED. NULL: anything.
  const char* policy;
  /// A CUDA event (CUevent or cudaEvent_t) that was recorded before this call: nothing is read or
  /// written before what it was recorded behind has ended. It must be neither recorded anew nor
  /// destroyed before the transfer has ended. NULL: at once.
  void* after_cuda_event;
} weft_transfer_options;

/// Checks ranges and rights once and copies the list, to be submitted any number of times, whole or
/// by index. `direction` is WEFT_WRITE or WEFT_READ.
WEFT_API weft_code weft_engine_prepare_pairs(weft_engine* engine, const weft_segment* local,
                                             const weft_remote* remote, int32_t direction,
                                             const weft_pair* pairs, size_t count,
                                             weft_prepared** prepared, weft_error** error);
WEFT_API weft_code weft_engine_prepare_strided(weft_engine* engine, const weft_segment* local,
                                               const weft_remote* remote, int32_t direction,
                                               const weft_strided* pieces, weft_prepared** prepared,
                                               weft_error** error);
WEFT_API weft_code weft_engine_prepare_paged(weft_engine* engine, const weft_segment* local,
                                             const weft_remote* remote, int32_t direction,
                                             const weft_paged* pieces, weft_prepared** prepared,
                                             weft_error** error);
WEFT_API void weft_prepared_free(weft_prepared* prepared);
/// Number of pieces.
WEFT_API size_t weft_prepared_size(const weft_prepared* prepared);
/// Bytes in all pieces together.
WEFT_API uint64_t weft_prepared_bytes(const weft_prepared* prepared);

/// Starts the pieces of `prepared` whose indices are in `picks`. Never blocks, unless `options` ask
/// to wait for room. They may be NULL here and below.
WEFT_API weft_code weft_engine_submit(weft_engine* engine, const weft_prepared* prepared,
                                      const uint32_t* picks, size_t count,
                                      const weft_transfer_options* options,
                                      weft_transfer** transfer, weft_error** error);
/// Starts all pieces of `prepared`.
WEFT_API weft_code weft_engine_submit_all(weft_engine* engine, const weft_prepared* prepared,
                                          const weft_transfer_options* options,
                                          weft_transfer** transfer, weft_error** error);
/// What moves bytes from one place to the next.
enum {
  WEFT_MOVER_NIC = 0,          ///< By DMA; not a copy from memory to memory, as the others are.
  WEFT_MOVER_COPY_ENGINE = 1,  ///< Of a GPU.
  WEFT_MOVER_CPU = 2,          ///< A process itself.
  WEFT_MOVER_KERNEL = 3        ///< Into and out of sockets, or between processes; a CPU too.
};

/// Something that bytes come to on their way.
enum {
  WEFT_STOP_HOST = 0,    ///< Host memory of a segment.
  WEFT_STOP_DEVICE = 1,  ///< A GPU's memory.
  WEFT_STOP_BOUNCE_BUFFER = 2,
  WEFT_STOP_PROVIDER_BUFFER = 3,
  WEFT_STOP_SOCKET_BUFFER = 4,
  WEFT_STOP_NIC = 5,
  WEFT_STOP_WIRE = 6
};

/// Whose a place or a copy is.
enum { WEFT_SIDE_LOCAL = 0, WEFT_SIDE_REMOTE = 1, WEFT_SIDE_BETWEEN = 2 };

/// The way that a transfer's bytes would take, as the providers declare it; not measured.
typedef struct weft_path weft_path;

typedef struct weft_path_summary {
  size_t size;
  int32_t transport;     ///< WEFT_TRANSPORT_*, but not WEFT_TRANSPORT_AUTOMATIC.
  const char* provider;  ///< This and the other texts live as long as the path.
  bool same_host;        ///< Both sides were proven to be on one machine.
  bool gpudirect_local;  ///< The memory is a GPU's, and a NIC reads or writes it itself.
  bool gpudirect_remote;
  uint32_t copies;  ///< Of each byte, from memory to memory, on both sides in sum.
  uint32_t copies_local;
  uint32_t copies_remote;
  uint32_t cpu_copies;  ///< Those of them that a CPU makes.
  /// Pieces of fewer bytes are copied so often on top, by the CPU. 0: none are.
  uint64_t bounced_below;
  uint32_t bounces_local;
  uint32_t bounces_remote;
  double gbps;          ///< Of the slowest link on the way; 0: not known.
  const char* limit;    ///< What sets it, or why it is not known.
  const char* refused;  ///< Which policy does not allow the path, and why; "": all do.
  size_t hop_count;
  size_t passed_over_count;
} weft_path_summary;

/// One step of the way.
typedef struct weft_hop {
  size_t size;
  int32_t from;  ///< A WEFT_STOP_ value.
  int32_t from_side;
  const char* from_text;  ///< "memory of GPU 3".
  int32_t to;
  int32_t to_side;
  const char* to_text;
  int32_t by;    ///< A WEFT_MOVER_ value.
  int32_t side;  ///< That it is made on, a WEFT_SIDE_ value.
  bool copies;   ///< It is a copy from memory to memory.
} weft_hop;

/// The path that a transfer would take now, and whether policies allow it. Nothing is moved.
WEFT_API weft_code weft_engine_explain(const weft_engine* engine, const weft_segment* local,
                                       const weft_remote* remote, int32_t direction,
                                       const weft_transfer_options* options, weft_path** path,
                                       weft_error** error);
WEFT_API void weft_path_free(weft_path* path);
WEFT_API weft_code weft_path_get(const weft_path* path, weft_path_summary* summary,
                                 weft_error** error);
WEFT_API weft_code weft_path_hop(const weft_path* path, size_t index, weft_hop* hop,
                                 weft_error** error);
/// Why a better path is not taken; NULL where there is no such index. Lives as long as the path.
WEFT_API const char* weft_path_passed_over(const weft_path* path, size_t index);

/// Prepares and submits in one.
WEFT_API weft_code weft_engine_write(weft_engine* engine, const weft_segment* local,
                                     const weft_remote* remote, const weft_pair* pairs,
                                     size_t count, const weft_transfer_options* options,
                                     weft_transfer** transfer, weft_error** error);
WEFT_API weft_code weft_engine_read(weft_engine* engine, const weft_segment* local,
                                    const weft_remote* remote, const weft_pair* pairs, size_t count,
                                    const weft_transfer_options* options, weft_transfer** transfer,
                                    weft_error** error);

/// Neither waits nor cancels: the transfer goes on.
WEFT_API void weft_transfer_free(weft_transfer* transfer);
/// A WEFT_STATE_ value; -1 for NULL.
WEFT_API int32_t weft_transfer_state(const weft_transfer* transfer);
/// True when nothing can touch the local memory on behalf of this transfer any more. A transfer
/// that has ended may still be not quiescent, for example after its deadline passed.
WEFT_API bool weft_transfer_quiescent(const weft_transfer* transfer);
/// Waits for the end. WEFT_OK when done; otherwise the error that ended it, or WEFT_TIMED_OUT if
/// the timeout passes first, in which case the transfer goes on. May carry some of it and of others
/// meanwhile (weft_config's copy_at_once_bytes), and so call what was to be called at their ends.
WEFT_API weft_code weft_transfer_wait(weft_transfer* transfer, int64_t timeout_ns,
                                      weft_error** error);
/// As weft_transfer_wait(), then until it is quiescent.
WEFT_API weft_code weft_transfer_wait_quiescent(weft_transfer* transfer, int64_t timeout_ns,
                                                weft_error** error);
/// Asks for an early end: pieces not yet posted stay unposted, posted ones drain, then the transfer
/// ends as cancelled (or done, if nothing was left to stop). Never blocks.
WEFT_API weft_code weft_transfer_cancel(weft_transfer* transfer, weft_error** error);

/// What a transfer did so far, or in all once it has ended.
typedef struct weft_report {
  size_t size;
  int32_t state;        ///< A WEFT_STATE_ value. weft_transfer_wait() has the error, if any.
  int32_t transport;    ///< A WEFT_TRANSPORT_ value.
  uint64_t bytes;       ///< Asked for.
  uint64_t bytes_done;  ///< Completed.
  uint64_t ranges;      ///< Pieces asked for.
  uint64_t runs;        ///< Pieces after coalescing neighbours.
  uint64_t operations;  ///< Chunks handed to transports.
  int64_t elapsed_ns;   ///< From submission to the end, or to now.
  size_t rail_count;    ///< Rails that carried it: weft_transfer_rail_share().
  char fallback[256];   ///< The beginning of weft_peer_fallback(); "" if it is empty.
  uint64_t retries;     ///< Chunks that came back, and were offered once more.
  int64_t queued_ns;    ///< From submission until the first chunk was taken.
  int64_t carried_ns;   ///< From then until the last one was home, as far as it got.
  size_t copied_count;  ///< Copies from memory to memory: weft_transfer_copied().
  /// Bytes that were copied, on both sides, for each that was carried, as far as known; 0 if none
  /// was carried.
  double amplification;
} weft_report;

/// How it is known that bytes were copied.
enum {
  WEFT_COPIED_COUNTED = 0,   ///< By this engine, which made the copy or had it made.
  WEFT_COPIED_DECLARED = 1,  ///< By what the provider says of itself, times the bytes carried.
  WEFT_COPIED_UNKNOWN = 2    ///< It may have been made; nobody tells how often.
};
/// A copy of a transfer's bytes from memory to memory.
typedef struct weft_copied {
  int32_t known;   ///< A WEFT_COPIED_ value.
  int32_t by;      ///< A WEFT_MOVER_ value.
  bool at_peer;    ///< On the peer's side; else on this one, or between the two.
  uint64_t bytes;  ///< 0 where unknown.
} weft_copied;

/// What one rail carried of a transfer.
typedef struct weft_rail_share {
  char rail[64];  ///< Its name, e.g. "tcp:0".
  uint64_t operations;
  uint64_t bytes;
} weft_rail_share;

/// Fills `report`, whose `size` must be set.
WEFT_API weft_code weft_transfer_report(const weft_transfer* transfer, weft_report* report,
                                        weft_error** error);
/// What became of one piece of a transfer that has ended.
enum {
  WEFT_PLACED_ALL = 0,     ///< Every byte is in its place, for sure.
  WEFT_PLACED_NONE = 1,    ///< Not one byte was moved.
  WEFT_PLACED_UNKNOWN = 2  ///< Some bytes may be in their place, or still come.
};
/// Fills `placed` with a WEFT_PLACED_ value for each piece, in the order of the submission; `count`
/// must be their number (weft_report::ranges).
WEFT_API weft_code weft_transfer_placed(const weft_transfer* transfer, uint8_t* placed,
                                        size_t count, weft_error** error);
/// The share of one of the rails counted by weft_report::rail_count.
WEFT_API weft_code weft_transfer_rail_share(const weft_transfer* transfer, size_t index,
                                            weft_rail_share* share, weft_error** error);
/// One of the copies counted by weft_report::copied_count.
WEFT_API weft_code weft_transfer_copied(const weft_transfer* transfer, size_t index,
                                        weft_copied* copied, weft_error** error);
/// @}

/// @name Signals and messages
/// @{

/// Called once when what was waited for has arrived (`error` is NULL) or can't arrive any more. On
/// a progress thread, as weft_on_transfer; `error` is not to be freed.
typedef void (*weft_on_arrival)(void* context, uint64_t cookie, const weft_error* error);

/// How an expectation or a receive reports its end, besides its wait function.
typedef struct weft_notify_options {
  size_t size;
  uint64_t cookie;
  bool event;              ///< Put an event into the engine's queue.
  weft_on_arrival on_end;  ///< May be NULL.
  void* context;           ///< Passed to `on_end`.
  /// When it ends as WEFT_TIMED_OUT for good, from the call; 0: never by itself, but with a stream
  /// after weft_config's default_timeout_ns.
  int64_t timeout_ns;
  /// What is put on this CUDA stream after the call begins once this has ended, with an error or
  /// without (see weft::NotifyOptions::cuda_stream). Where `on_stream` is false it is not looked
  /// at.
  bool on_stream;
  void* cuda_stream;
} weft_notify_options;

/// Raises a signal at the peer without moving data. `data` may be NULL where `bytes` is 0.
WEFT_API weft_code weft_engine_signal(weft_engine* engine, const weft_peer* peer, uint64_t id,
                                      const void* data, size_t bytes, int64_t timeout_ns,
                                      weft_error** error);
/// Waits for `count` (at least 1) signals `id` from `peer`. Signals that came before count. Each
/// signal is given to one expectation, the oldest first. `options` may be NULL.
WEFT_API weft_code weft_engine_expect(weft_engine* engine, const weft_peer* peer, uint64_t id,
                                      uint64_t count, const weft_notify_options* options,
                                      weft_expectation** expectation, weft_error** error);
/// Gives up the expectation; signals that it had collected are dropped.
WEFT_API void weft_expectation_free(weft_expectation* expectation);
WEFT_API bool weft_expectation_ready(const weft_expectation* expectation);
/// WEFT_OK when all have arrived; WEFT_REMOTE_FAILED or WEFT_PEER_DOWN when they can't any more;
/// WEFT_TIMED_OUT leaves the expectation standing.
WEFT_API weft_code weft_expectation_wait(weft_expectation* expectation, int64_t timeout_ns,
                                         weft_error** error);
/// After a successful wait: how many of the signals carried bytes.
WEFT_API size_t weft_expectation_payload_count(const weft_expectation* expectation);
/// The bytes of one of them, in the order in which they arrived; `bytes` may be NULL.
WEFT_API const void* weft_expectation_payload(const weft_expectation* expectation, size_t index,
                                              size_t* bytes);

/// Sends a tagged message. Returns when the bytes are copied into the peer's send queue, waiting
/// while that is full (then WEFT_QUEUE_FULL); messages to one peer are matched in order.
WEFT_API weft_code weft_engine_send(weft_engine* engine, const weft_peer* peer, uint64_t tag,
                                    const void* data, size_t bytes, int64_t timeout_ns,
                                    weft_error** error);
/// Asks for the next message whose tag equals `tag` in the bits set in `mask`, from `peer`.
/// `options` may be NULL.
WEFT_API weft_code weft_engine_receive(weft_engine* engine, const weft_peer* peer, uint64_t tag,
                                       uint64_t mask, const weft_notify_options* options,
                                       weft_receive** receive, weft_error** error);
/// weft_engine_receive() and weft_receive_wait() in one: the message is in `receive`. On
/// WEFT_TIMED_OUT the request is given up.
WEFT_API weft_code weft_engine_recv(weft_engine* engine, const weft_peer* peer, uint64_t tag,
                                    uint64_t mask, int64_t timeout_ns, weft_receive** receive,
                                    weft_error** error);
/// Gives up the request, or the message that answered it.
WEFT_API void weft_receive_free(weft_receive* receive);
WEFT_API bool weft_receive_ready(const weft_receive* receive);
/// As weft_expectation_wait().
WEFT_API weft_code weft_receive_wait(weft_receive* receive, int64_t timeout_ns, weft_error** error);
/// After a successful wait: the message's parts. Before it they are 0 and NULL.
WEFT_API uint64_t weft_receive_tag(const weft_receive* receive);
/// Name of the sender.
WEFT_API const char* weft_receive_peer(const weft_receive* receive);
/// The message's bytes; NULL where it has none.
WEFT_API const void* weft_receive_data(const weft_receive* receive);
WEFT_API size_t weft_receive_bytes(const weft_receive* receive);
/// @}

/// @name Progress and events
/// @{
enum {
  WEFT_EVENT_TRANSFER_ENDED = 0,
  WEFT_EVENT_SIGNALS_ARRIVED = 1,
  WEFT_EVENT_MESSAGE_ARRIVED = 2,
  WEFT_EVENT_PEER_UP = 3,
  WEFT_EVENT_PEER_DOWN = 4
};

/// Something that happened.
typedef struct weft_event {
  int32_t kind;       ///< A WEFT_EVENT_ value.
  int32_t state;      ///< Of a transfer: a WEFT_STATE_ value.
  uint64_t cookie;    ///< Of the transfer, expectation or receive.
  weft_error* error;  ///< NULL where all is well; otherwise the caller's, to be freed.
  char peer[256];     ///< Name of the peer concerned.
} weft_event;

/// Manual progress: one round of weft::Engine::progress(). `operations`, unless NULL, is set to
/// how many ended. One thread at a time does the work; others get 0 at once.
WEFT_API weft_code weft_engine_progress(weft_engine* engine, size_t* operations,
                                        weft_error** error);
/// Takes up to `capacity` events without waiting and puts their number into `count`.
WEFT_API weft_code weft_engine_poll(weft_engine* engine, weft_event* events, size_t capacity,
                                    size_t* count, weft_error** error);
/// Readable while events are queued (an eventfd: for poll and epoll; do not read it). Belongs to
/// the engine.
WEFT_API int weft_engine_event_fd(const weft_engine* engine);
/// @}

/// @name KV caches
/// Layouts of paged KV caches, and which bytes go where when blocks move from one into another of a
/// different shape. Arithmetic only: no memory is touched. kv.hpp explains the words.
/// @{

typedef struct weft_kv_layout weft_kv_layout;  ///< The shape of one process's cache; immutable.
typedef struct weft_kv_cache weft_kv_cache;    ///< A layout that has a place in memory.
typedef struct weft_kv_plan weft_kv_plan;      ///< The copies that move some blocks.

/// Element type of a cache.
enum { WEFT_KV_BF16 = 0, WEFT_KV_FP8 = 1 };

/// What a layer keeps for each token.
enum {
  WEFT_KV_SPLIT = 0,  ///< All blocks' keys, then all blocks' values: [2][blocks][page].
  WEFT_KV_FUSED = 1,  ///< Keys and values of a block side by side: [blocks][2][page].
  WEFT_KV_LATENT = 2  ///< One vector that stands for both (MLA): [blocks][page].
};

/// Which index varies slower.
enum { WEFT_KV_LAYER_MAJOR = 0, WEFT_KV_BLOCK_MAJOR = 1 };

/// The order inside a page.
enum {
  WEFT_KV_NHD = 0,  ///< [tokens][heads][head size].
  WEFT_KV_HND = 1   ///< [heads][tokens][head size].
};

/// How many regions (tensors) a group is allocated in.
enum {
  WEFT_KV_REGION_ONE = 0,                ///< One for the whole group.
  WEFT_KV_REGION_PER_LAYER = 1,          ///< One for each layer. Needs layer-major.
  WEFT_KV_REGION_PER_PART = 2,           ///< One for keys, one for values. Needs split.
  WEFT_KV_REGION_PER_LAYER_AND_PART = 3  ///< One for each layer's keys and values. Needs both.
};

/// A known model's KV shape. The strings live as long as the program.
typedef struct weft_kv_model {
  size_t size;
  const char* name;  ///< E.g. "Llama-3.1-8B".
  const char* id;    ///< On the Hugging Face hub, e.g. "meta-llama/Llama-3.1-8B".
  uint32_t layers;
  uint32_t kv_heads;              ///< 1 for latents.
  uint32_t head_size;             ///< Elements; for latents kv_lora_rank + qk_rope_head_dim.
  uint32_t window;                ///< Of the even layers where they alternate; else 0.
  uint64_t bytes_per_token_bf16;  ///< In all layers of the whole model; windows not considered.
} weft_kv_model;

WEFT_API size_t weft_kv_model_count(void);
/// Fills `model`, whose `size` must be set, here and below.
WEFT_API weft_code weft_kv_model_at(size_t index, weft_kv_model* model, weft_error** error);
/// The model of that name or id; letters' case is ignored.
WEFT_API weft_code weft_kv_find_model(const char* name, weft_kv_model* model, weft_error** error);

/// How a serving engine lays out its cache; what the model leaves open.
typedef struct weft_kv_layout_options {
  size_t size;
  int32_t dtype;              ///< WEFT_KV_BF16 or WEFT_KV_FP8.
  int32_t parts;              ///< WEFT_KV_SPLIT or WEFT_KV_FUSED; ignored for latent models.
  int32_t order;              ///< WEFT_KV_LAYER_MAJOR or WEFT_KV_BLOCK_MAJOR.
  int32_t head_order;         ///< WEFT_KV_NHD or WEFT_KV_HND.
  int32_t regions;            ///< A WEFT_KV_REGION_ value.
  uint32_t tokens_per_block;  ///< 0: 16.
  uint32_t blocks;            ///< In each group.
  uint32_t tp_size;           ///< Tensor-parallel ranks, 1 to 8. 0: 1.
  uint32_t tp_rank;
  uint64_t block_padding;    ///< Unused bytes after each block.
  uint64_t block_alignment;  ///< Blocks' distance is rounded up to a multiple of it. 0: 1.
} weft_kv_layout_options;

/// Layers that share one block table, for models that are not known by name.
typedef struct weft_kv_group {
  size_t size;
  const uint32_t* layers;  ///< Numbers of the model's layers, ascending, from 0.
  size_t layer_count;
  uint32_t blocks;  ///< In the cache; block ids are less than this.
  uint32_t tokens_per_block;
  uint32_t kv_heads;      ///< Of the model, before tensor parallelism. 1 for latents.
  uint32_t head_size;     ///< Elements in one head's key, value or latent vector.
  uint32_t element_size;  ///< Bytes: 2 for bf16, 1 for fp8.
  uint32_t window;        ///< Tokens that the layers look back on; 0 for all.
  int32_t parts;          ///< WEFT_KV_SPLIT, WEFT_KV_FUSED or WEFT_KV_LATENT.
  int32_t order;
  int32_t head_order;
  int32_t regions;
  uint64_t block_padding;
  uint64_t block_alignment;  ///< 0: 1.
} weft_kv_group;

/// The layout of one rank of a known model. Models whose layers alternate have two groups, the
/// windowed layers first.
WEFT_API weft_code weft_kv_layout_of_model(const char* model, const weft_kv_layout_options* options,
                                           weft_kv_layout** layout, weft_error** error);
/// A layout of `count` groups given one by one. `tp_size` is 1 to 8, `tp_rank` less.
WEFT_API weft_code weft_kv_layout_create(const weft_kv_group* const* groups, size_t count,
                                         uint32_t tp_size, uint32_t tp_rank,
                                         weft_kv_layout** layout, weft_error** error);
WEFT_API void weft_kv_layout_free(weft_kv_layout* layout);
WEFT_API size_t weft_kv_layout_group_count(const weft_kv_layout* layout);
/// Number of regions to allocate: group by group, in each layer by layer, K before V.
WEFT_API size_t weft_kv_layout_region_count(const weft_kv_layout* layout);
/// Size of one of them, in bytes.
WEFT_API uint64_t weft_kv_layout_region_bytes(const weft_kv_layout* layout, size_t index);
/// All regions together, in bytes.
WEFT_API uint64_t weft_kv_layout_bytes(const weft_kv_layout* layout);
/// What one token takes on this rank in all layers, in bytes, without padding.
WEFT_API uint64_t weft_kv_layout_bytes_per_token(const weft_kv_layout* layout);
/// Writes the source ranks that have something for `dst`'s rank, ascending, up to `capacity` of
/// them, and puts the number of all (at most 8) into `count`. `src` is the layout of any source
/// rank.
WEFT_API weft_code weft_kv_source_ranks(const weft_kv_layout* src, const weft_kv_layout* dst,
                                        uint32_t* ranks, size_t capacity, size_t* count,
                                        weft_error** error);

/// Where a region of a layout starts: at `offset` bytes of the caller's region number `region`,
/// which usually stands for a segment. Several may share one.
typedef struct weft_kv_base {
  uint32_t region;
  uint64_t offset;
} weft_kv_base;

/// A cache with its regions at `count` bases, in the layout's order. With `count` 0 all regions lie
/// one after another in region 0. The layout is copied.
WEFT_API weft_code weft_kv_cache_create(const weft_kv_layout* layout, const weft_kv_base* bases,
                                        size_t count, weft_kv_cache** cache, weft_error** error);
WEFT_API void weft_kv_cache_free(weft_kv_cache* cache);

/// As weft_kv_blocks::tokens: everything in both lists of blocks.
#define WEFT_KV_ALL_TOKENS UINT64_MAX

/// What to copy in one group: tokens of one request, whose blocks are listed in token order.
typedef struct weft_kv_blocks {
  const uint32_t* src;
  size_t src_count;
  const uint32_t* dst;  ///< Without repetitions.
  size_t dst_count;
  uint64_t tokens;    ///< How many to copy, or WEFT_KV_ALL_TOKENS.
  uint32_t src_skip;  ///< Tokens to pass over in the first block.
  uint32_t dst_skip;
} weft_kv_blocks;

/// `length` bytes from one place to another.
typedef struct weft_kv_copy {
  uint32_t src_region;
  uint32_t dst_region;
  uint64_t src_offset;
  uint64_t dst_offset;
  uint64_t length;
} weft_kv_copy;

/// The copies that bring `blocks` (one entry for each of `group_count` groups) of one source rank
/// to one destination rank, in layers `first_layer` to `first_layer + layer_count - 1` (all if
/// `layer_count` is 0).
WEFT_API weft_code weft_kv_plan_create(const weft_kv_cache* src, const weft_kv_cache* dst,
                                       const weft_kv_blocks* blocks, size_t group_count,
                                       uint32_t first_layer, uint32_t layer_count,
                                       weft_kv_plan** plan, weft_error** error);
WEFT_API void weft_kv_plan_free(weft_kv_plan* plan);
/// An array of weft_kv_plan_count() copies.
WEFT_API const weft_kv_copy* weft_kv_plan_copies(const weft_kv_plan* plan);
WEFT_API size_t weft_kv_plan_count(const weft_kv_plan* plan);
WEFT_API uint64_t weft_kv_plan_bytes(const weft_kv_plan* plan);
/// Copies before merging: contiguous runs inside one page of both sides.
WEFT_API uint64_t weft_kv_plan_pieces(const weft_kv_plan* plan);
/// @}

#ifdef __cplusplus
}
#endif

#endif
