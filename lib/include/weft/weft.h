/// @file
/// Weft's C API: the same library for C and for every language that can call C.
///
/// Conventions, which hold for every function unless it says otherwise:
///
/// - **Handles** (`weft_engine *`, `weft_peer *`, ...) are made by one function and belong to the
///   caller, which gives them back with the `_free` function of their type. It also takes NULL.
///   They may be freed in any order, even after their engine; calls that need a closed engine then
///   fail with WEFT_CLOSED.
/// - **Failure** is a status: 0 (WEFT_OK) or another code. Functions that return a status take a
///   `weft_error **` last. If it is not NULL, it is set to NULL on success, and to an error that
///   the caller frees on failure. All other output parameters keep their values on failure.
/// - **Bad arguments**, such as NULL where a value is needed, give WEFT_INVALID_ARGUMENT. Functions
///   without a status return 0, false, NULL or -1 (a descriptor or state) for a NULL handle, and
///   for an index out of range.
/// - **Returned pointers** point into the handle that was asked, and are valid until it is freed.
///   Strings end with a zero byte. Weft keeps nothing that a caller passes in, except adopted
///   memory, callbacks and their contexts.
/// - **Timeouts** are in nanoseconds from now. 0 and negative ones look once and do not wait. All
///   are cut to one day: no call waits without end.
/// - **Threads**: calls may be made from any thread, also with the same handle, as long as no
///   thread frees it meanwhile. One thread at a time waits for a weft_expectation or weft_receive.
/// - **Structs that begin with `size`** may grow in later versions. Set `size` to the size of the
///   struct, and every member that you don't need to zero, which means the default. Members that
///   the program's header has and the library does not must be zero. All other structs stay as
///   they are.
/// - No exception leaves a function, and no callback may throw one.
///
/// To write a piece of memory into another process's, most checks left out (a whole program is
/// tools/docs/examples/handover.c):
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
/// weft_peer_lookup(peer, "kv", second, &remote, &error);
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

/// WEFT_OK, or the kind of failure.
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
  WEFT_STALE = 10,              ///< The grant has ended, or is of an earlier incarnation.
  WEFT_PEER_DOWN = 11,          ///< The peer is gone or was never up.
  WEFT_PROTOCOL_MISMATCH = 12,  ///< The other side speaks another version, or something else.
  WEFT_FABRIC_FAILED = 13,      ///< libfabric reported an error: weft_error_fabric_code().
  WEFT_REMOTE_FAILED = 14,      ///< The other side reported why it failed.
  WEFT_QUARANTINED = 15,        ///< Not proven safe to reuse: don't use the memory.
  WEFT_CLOSED = 16,             ///< The engine was closed.
  WEFT_FORKED = 17,             ///< Called in a child of the process that opened the engine.
  WEFT_INTERNAL = 18,           ///< A broken invariant of Weft itself: please report it.
  WEFT_CORRUPT = 19,            ///< The bytes at the two ends of a transfer differ.
  WEFT_POLICY_REFUSED = 20      ///< A policy does not allow the path of a transfer.
};

/// A code's name in lower case, e.g. "timed_out"; "ok" for 0. Lives as long as the program.
WEFT_API const char* weft_code_name(weft_code code);

/// A failure: a code for the program, a sentence for a person, and the context.
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
/// previous sink is not called any more.
WEFT_API weft_code weft_set_log_sink(weft_log_sink sink, void* context, weft_error** error);
/// Lines below `level` are not logged. Default: warning, or the environment variable WEFT_LOG
/// (debug, info, warning, error, off).
WEFT_API weft_code weft_set_log_level(int32_t level, weft_error** error);

/// Sets the environment variables of libfabric and libibverbs that Weft's promises rest on, unless
/// they are set already. Call it first in main(), before there are other threads: otherwise the
/// first engine sets them, and with glibc before 2.41 a thread that calls getenv() meanwhile can
/// crash.
WEFT_API void weft_prepare_process(void);
/// @}

/// @name Handles
/// @{
typedef struct weft_engine weft_engine;            ///< Rails, threads and peers of a process.
typedef struct weft_info weft_info;                ///< A snapshot of an engine or of a discovery.
typedef struct weft_text weft_text;                ///< Text from the library.
typedef struct weft_nics weft_nics;                ///< The counters of an engine's NICs.
typedef struct weft_peer weft_peer;                ///< Another engine, once met.
typedef struct weft_segment weft_segment;          ///< Registered local memory.
typedef struct weft_grant weft_grant;              ///< The right of peers to a segment's ranges.
typedef struct weft_remote weft_remote;            ///< A peer's grant, imported.
typedef struct weft_prepared weft_prepared;        ///< Pieces, checked once, submitted often.
typedef struct weft_transfer weft_transfer;        ///< One batch of pieces.
typedef struct weft_expectation weft_expectation;  ///< A wait for signals.
typedef struct weft_receive weft_receive;          ///< A request for a message.
/// @}

/// @name Engines
/// @{

/// The kind of transport that carries the bytes.
enum {
  WEFT_TRANSPORT_AUTOMATIC = 0,   ///< See weft::TransportKind.
  WEFT_TRANSPORT_ONE_SIDED = 1,   ///< RMA straight between the two segments.
  WEFT_TRANSPORT_BOUNCE = 2,      ///< Messages through bounce buffers: two more copies.
  WEFT_TRANSPORT_DEVICE_COPY = 3  ///< A GPU's copy engine, from GPU to GPU of one host.
};

/// The order of transfers to one peer. Within a class the transfer with the earliest deadline goes
/// first; transfers with the same deadline take turns. No class starves: each class that waits gets
/// at least a sixteenth of the bytes.
enum {
  WEFT_PRIORITY_LATENCY = -1,  ///< A request waits for it.
  WEFT_PRIORITY_NORMAL = 0,
  WEFT_PRIORITY_BULK = 1  ///< When nothing else is waiting.
};

/// How an engine is set up: options by name and text. An option that the program does not set comes
/// from the environment (rail_address from WEFT_RAIL_ADDRESS), else from a TOML file (rail_address
/// = "10.0.0.7"), else it has its default. tools/docs/options.md lists all options;
/// weft_option_info() tells the same to a program. One configuration may open several engines, and
/// is not to be changed by one thread while another uses it.
typedef struct weft_config weft_config;

WEFT_API weft_code weft_config_create(weft_config** config, weft_error** error);
/// Sets one option, as it would be written in the environment:
///
/// @code
/// weft_config_set(config, "providers", "efa,tcp", &error);
/// weft_config_set(config, "default_timeout", "5s", &error);
/// @endcode
///
/// Lists have commas between their items, times a unit (ns, us, ms, s), bytes may have one (KiB,
/// MiB, GiB), flags are "true" or "false". WEFT_NOT_FOUND if there is no such option,
/// WEFT_INVALID_ARGUMENT if the text can't be read or the value is out of range; `config` then
/// stays as it was. An option that is set to its default counts as not set.
WEFT_API weft_code weft_config_set(weft_config* config, const char* option, const char* text,
                                   weft_error** error);
WEFT_API void weft_config_free(weft_config* config);

/// Everything about one option. The strings live as long as the program.
typedef struct weft_option {
  size_t size;
  const char* name;      ///< "bounce_buffers".
  const char* variable;  ///< Of the environment: "WEFT_BOUNCE_BUFFERS".
  const char* group;     ///< Subject that it shares with its neighbours: "Credentials".
  const char* type;      ///< For people: "number", "bytes", "time", "threads or manual".
  const char* standard;  ///< Its default, as text; may be "".
  const char* least;     ///< Bounds, as text; "" where there is none.
  const char* most;
  const char* unit;  ///< What a number counts: "rails per NIC"; may be "".
  const char* doc;   ///< A few sentences. Names in it stand between backticks.
} weft_option;

WEFT_API size_t weft_option_count(void);
/// Fills `option`, whose `size` must be set.
WEFT_API weft_code weft_option_info(size_t index, weft_option* option, weft_error** error);

/// Opens rails and starts listening. `config` may be NULL: all defaults.
WEFT_API weft_code weft_engine_open(const weft_config* config, weft_engine** engine,
                                    weft_error** error);
/// Says goodbye to peers, ends all transfers as closed, stops the threads. WEFT_QUARANTINED if
/// something could not be closed in time. The handle remains; free it.
WEFT_API weft_code weft_engine_close(weft_engine* engine, int64_t timeout_ns, weft_error** error);
/// Closes the engine within two seconds if it is open. What can't be closed by then is abandoned,
/// with its memory mapped.
WEFT_API void weft_engine_free(weft_engine* engine);

WEFT_API const char* weft_engine_name(const weft_engine* engine);
/// The address for weft_engine_connect() of peers; empty if the engine does not listen.
WEFT_API const char* weft_engine_address(const weft_engine* engine);
/// @}

/// @name Rails, candidates, settings
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
  uint64_t operations;            ///< Completed since the rail was opened.
  uint64_t bytes;                 ///< Of these operations.
  uint64_t in_flight;             ///< Operations.
  uint64_t lost;                  ///< Operations that never completed after their peer died.
  uint64_t max_message;           ///< Largest operation, in bytes.
  uint64_t window;                ///< Most operations that the provider takes at a time.
  double gbps;                    ///< Link speed in Gb/s; 0: unknown.
  bool emulated_write;  ///< The provider builds writes out of messages; the target's CPU copies.
  bool emulated_read;
  uint32_t copies;    ///< Of each byte by the provider, on both sides together.
  const char* pci;    ///< Of the NIC, "0000:4f:00.0"; "": unknown, or none.
  int32_t numa_node;  ///< Of the NIC; -1: unknown.
  /// Memory that the engine keeps for peers, in bytes; pinned if `pins_buffers`.
  uint64_t message_buffer_bytes, bounce_buffer_bytes;
  uint64_t receives_promised;  ///< What peers may send without being asked.
  uint64_t receives_posted;
  uint64_t receive_queue;  ///< Most receives that the provider keeps posted; 0: no fixed number.
  bool pins_buffers;
} weft_rail_info;

/// A NIC or interface that was considered when rails were chosen.
typedef struct weft_candidate {
  size_t size;
  const char* provider;
  const char* domain;
  const char* fabric;
  const char* reason;  ///< Why it is used or not: a sentence.
  bool taken;
} weft_candidate;

/// The libfabric that this process uses (weft::LibfabricInfo).
typedef struct weft_libfabric {
  size_t size;
  const char* version;  ///< "2.1"; "": none is in use.
  const char* file;     ///< "": none is in use.
  const char* found;    ///< How, as half a sentence: "the system has it".
  const char* warning;  ///< What may go wrong with it, as a sentence; "": nothing is known.
  const char* problem;  ///< Why none was found, as a sentence; "" if one was, or none was wanted.
} weft_libfabric;

/// An option as the engine uses it, and where its value came from.
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

/// A snapshot of the engine: its rails with their counters, and the candidates.
WEFT_API weft_code weft_engine_info(const weft_engine* engine, weft_info** info,
                                    weft_error** error);
/// Looks for providers and NICs without opening anything: which weft_engine_open() would use. The
/// result has candidates and libfabric only. `config` may be NULL.
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
/// Why the rails are slower than this machine seems to have; "" if they are not. Belongs to `info`.
WEFT_API const char* weft_info_fallback(const weft_info* info);
/// Fills `libfabric`, whose `size` must be set. Its strings belong to `info`.
WEFT_API weft_code weft_info_libfabric(const weft_info* info, weft_libfabric* libfabric,
                                       weft_error** error);
/// Fills `candidate`, whose `size` must be set. Its strings belong to `info`.
WEFT_API weft_code weft_info_candidate(const weft_info* info, size_t index,
                                       weft_candidate* candidate, weft_error** error);
/// @}

/// @name Metrics
/// @{

/// Totals of the transfers that ended and of what peers did since the engine was opened, and the
/// present state of rails, grants and peers, in Prometheus's text format, version 0.0.4.
/// WEFT_UNAVAILABLE if metrics are off.
WEFT_API weft_code weft_engine_metrics_text(const weft_engine* engine, weft_text** text,
                                            weft_error** error);
/// The same, and the slowest transfers of the last one to two minutes, as one JSON document.
WEFT_API weft_code weft_engine_snapshot(const weft_engine* engine, weft_text** text,
                                        weft_error** error);
/// The address that `metrics_listen` led to; "" if there is none.
WEFT_API const char* weft_engine_metrics_address(const weft_engine* engine);
/// The bytes, with a zero behind them. Belongs to `text`.
WEFT_API const char* weft_text_get(const weft_text* text);
WEFT_API void weft_text_free(weft_text* text);

/// A counter that the NIC's driver does not have.
#define WEFT_NOT_COUNTED UINT64_MAX

/// Bytes that went over an RDMA NIC since its driver was started, for all processes together.
/// WEFT_NOT_COUNTED: the driver does not have the counter, or it can't be read. EFA has all of
/// them; InfiniBand and RoCE usually have `sent` and `received` only.
typedef struct weft_nic_counters {
  size_t size;
  const char* nic;            ///< As weft_rail_info::domain: "rdmap79s0".
  size_t rail_count;          ///< Rails of this engine on the NIC: weft_nics_rail().
  uint64_t sent, received;    ///< Bytes of every kind.
  uint64_t written;           ///< By RDMA writes of this NIC.
  uint64_t written_by_peers;  ///< By RDMA writes of its peers.
  uint64_t read;              ///< By RDMA reads of this NIC.
  uint64_t read_by_peers;     ///< By RDMA reads of its peers.
  uint64_t messages_sent;     ///< Bytes of sends and receives.
  uint64_t messages_received;
} weft_nic_counters;

/// What the RDMA NICs of the rails have counted: one entry for each NIC, in the order of their
/// first rails. Empty if there are none, or if a container hides them. Reads files, for which a
/// driver may ask its device: not for callbacks.
WEFT_API weft_code weft_engine_nic_counters(const weft_engine* engine, weft_nics** nics,
                                            weft_error** error);
WEFT_API void weft_nics_free(weft_nics* nics);
WEFT_API size_t weft_nics_count(const weft_nics* nics);
/// Fills `counters`, whose `size` must be set. Its strings belong to `nics`.
WEFT_API weft_code weft_nics_counters(const weft_nics* nics, size_t index,
                                      weft_nic_counters* counters, weft_error** error);
/// The name of a rail on one of the NICs; NULL if there is none. Belongs to `nics`.
WEFT_API const char* weft_nics_rail(const weft_nics* nics, size_t index, size_t rail);
/// @}

/// @name Peers
/// @{

/// Meets the engine at "host:port". Both engines may connect; they are one peer to each other. A
/// handle stays valid when the peer is gone; a peer that comes back is a new one.
WEFT_API weft_code weft_engine_connect(weft_engine* engine, const char* address, int64_t timeout_ns,
                                       weft_peer** peer, weft_error** error);
/// The same, and again whenever the peer is gone, until weft_peer_disconnect(). A peer that comes
/// back is a new peer: weft_engine_peer() gives its handle.
WEFT_API weft_code weft_engine_keep_connected(weft_engine* engine, const char* address,
                                              int64_t timeout_ns, weft_peer** peer,
                                              weft_error** error);
/// The peer of that name, as soon as it is up.
WEFT_API weft_code weft_engine_peer(weft_engine* engine, const char* name, int64_t timeout_ns,
                                    weft_peer** peer, weft_error** error);
/// Waits for the next peer that connected to this engine and was not returned before.
WEFT_API weft_code weft_engine_accept(weft_engine* engine, int64_t timeout_ns, weft_peer** peer,
                                      weft_error** error);
/// Readable while weft_engine_accept() would not wait (an eventfd: for poll and epoll; do not read
/// it). Belongs to the engine.
WEFT_API int weft_engine_accept_fd(const weft_engine* engine);
/// Makes handles of up to `capacity` peers that are up, and sets `count` to their number. Free each
/// handle. With `capacity` 0 `peers` may be NULL, and `count` is the number of all peers that are
/// up.
WEFT_API weft_code weft_engine_peers(const weft_engine* engine, weft_peer** peers, size_t capacity,
                                     size_t* count, weft_error** error);
/// Says goodbye; transfers with the peer fail.
WEFT_API weft_code weft_peer_disconnect(const weft_peer* peer, weft_error** error);
/// Closes a rail (weft_info_rail) and opens it again. Afterwards nothing that either side posted
/// over it before touches memory. For a NIC that neither completes nor fails its operations, or to
/// fence off a peer that is gone. This engine's operations on the rail are carried out again; those
/// of peers fail. WEFT_TIMED_OUT if it did not finish in time: the rail is out of use until it
/// does. WEFT_UNSUPPORTED over shared memory. GPU memory that the rail can't register again is
/// staged on it.
WEFT_API weft_code weft_engine_reopen(weft_engine* engine, const char* rail, int64_t timeout_ns,
                                      weft_error** error);

WEFT_API void weft_peer_free(weft_peer* peer);
WEFT_API const char* weft_peer_name(const weft_peer* peer);
/// A number that changes each time the engine of that name is opened.
WEFT_API uint64_t weft_peer_incarnation(const weft_peer* peer);
WEFT_API bool weft_peer_up(const weft_peer* peer);
/// "down", "up", "slow" or "silent": see weft::Health. NULL if `peer` is.
WEFT_API const char* weft_peer_health(const weft_peer* peer);
/// WEFT_OK while the peer is up; afterwards the error that says why it is down.
WEFT_API weft_code weft_peer_check(const weft_peer* peer, weft_error** error);
/// Whether both engines are proven to be on one machine.
WEFT_API bool weft_peer_same_host(const weft_peer* peer);
/// Its control address as advertised.
WEFT_API const char* weft_peer_address(const weft_peer* peer);
/// Number of local rails that transfers to this peer use.
WEFT_API size_t weft_peer_rail_count(const weft_peer* peer);
/// The name of one of them, e.g. "shm:0".
WEFT_API const char* weft_peer_rail(const weft_peer* peer, size_t index);
/// Why these rails, and why not better ones: a sentence.
WEFT_API const char* weft_peer_route_reason(const weft_peer* peer);
/// Why the rails are slower than one of the two sides has or seems to have, or than one host
/// allows; "" if they are not.
WEFT_API const char* weft_peer_fallback(const weft_peer* peer);
/// @}

/// @name Memory
/// @{

/// The CPU's memory, or a device's.
enum {
  WEFT_MEMORY_HOST = 0,
  WEFT_MEMORY_DEVICE = 1,
  WEFT_MEMORY_FILE = 2,          ///< The drive reads and writes by itself.
  WEFT_MEMORY_BUFFERED_FILE = 3  ///< The kernel copies, through its page cache.
};

/// Where memory lies.
typedef struct weft_place {
  int32_t kind;       ///< A WEFT_MEMORY_ value.
  int32_t numa_node;  ///< -1: unknown, or pages lie on several nodes.
  int32_t device;     ///< The GPU that owns or uses it, counted in bus order; -1: none.
  int32_t drive;      ///< The drive that a file lies on, in bus order; -1: none, or several.
} weft_place;

/// A piece of a segment, in bytes from the segment's start.
typedef struct weft_range {
  uint64_t offset;
  uint64_t length;
} weft_range;

/// Rights of a peer to granted memory.
enum { WEFT_RIGHT_READ = 1, WEFT_RIGHT_WRITE = 2, WEFT_RIGHT_READ_WRITE = 3 };

/// Whether a grant shares its keys with others, as weft::Keys in weft/grant.hpp.
enum { WEFT_KEYS_AUTOMATIC = 0, WEFT_KEYS_OWN = 1 };

/// A segment with fresh zeroed pages of its own.
WEFT_API weft_code weft_engine_add_own(weft_engine* engine, size_t bytes, weft_segment** segment,
                                       weft_error** error);
/// The same in huge pages (2 MiB); `bytes` is rounded up. WEFT_OUT_OF_MEMORY if the system has none
/// reserved.
WEFT_API weft_code weft_engine_add_huge(weft_engine* engine, size_t bytes, weft_segment** segment,
                                        weft_error** error);
/// The same in huge pages of `page_bytes`, e.g. 1 GiB. WEFT_UNSUPPORTED if the system has no pages
/// of this size.
WEFT_API weft_code weft_engine_add_huge_pages(weft_engine* engine, size_t bytes, size_t page_bytes,
                                              weft_segment** segment, weft_error** error);
/// Fresh zeroed pages behind a memfd, which other processes may map: weft_segment_fd().
WEFT_API weft_code weft_engine_add_shared(weft_engine* engine, size_t bytes, weft_segment** segment,
                                          weft_error** error);
/// Maps `bytes` of a file descriptor that supports mmap, from a page-aligned `offset`. The
/// descriptor is duplicated; the caller keeps its own.
WEFT_API weft_code weft_engine_add_map(weft_engine* engine, int fd, uint64_t offset, size_t bytes,
                                       weft_segment** segment, weft_error** error);
/// Memory of the caller, the CPU's or a GPU's. It must stay mapped until weft_segment_release() has
/// returned without an error; freeing the handle is not enough. See weft::Memory::adopt.
WEFT_API weft_code weft_engine_adopt(weft_engine* engine, void* address, size_t bytes,
                                     weft_segment** segment, weft_error** error);
/// The same for memory that may be read and not written. See weft::Memory::read_only.
WEFT_API weft_code weft_engine_adopt_read_only(weft_engine* engine, const void* address,
                                               size_t bytes, weft_segment** segment,
                                               weft_error** error);
/// As weft_engine_adopt(), for memory that the program may forget: `let_go(context)` is called
/// once, when nothing touches it any more, or before this function returns, if it fails for another
/// reason than a NULL argument. It is called on any thread, must be short, and must not wait.
WEFT_API weft_code weft_engine_adopt_owned(weft_engine* engine, void* address, size_t bytes,
                                           void (*let_go)(void* context), void* context,
                                           weft_segment** segment, weft_error** error);

/// How a file is used as memory, as weft::FileOptions in weft/file_options.hpp.
/// Zeros are the defaults.
typedef struct weft_file_options {
  size_t size;
  bool buffered;             ///< Through the page cache, also where direct I/O is to be had.
  bool read_only;            ///< Nothing is written.
  bool create;               ///< The file is made, or made longer, where that is needed.
  bool durable;              ///< A write is done only once the device has it for good.
  uint32_t queue_depth;      ///< Reads and writes that the drive has at a time; 0: 64.
  uint64_t bytes_in_flight;  ///< Bytes of these; 0: 64 MiB.
  int64_t timeout_ns;        ///< What the drive has not done by then has failed; 0: 30 s.
  uint64_t checked_block;    ///< Bytes of a block, each of which has its sum; 0: none has.
  const char* sums;          ///< The file of sums; NULL: the path with ".xxh3" behind it.
  bool reserve;              ///< Room on the disk is reserved at once, or adding fails.
} weft_file_options;

/// `bytes` of a file or a block device, from `offset` on; 0: up to its end. See weft::Memory::file.
/// `options` may be NULL.
WEFT_API weft_code weft_engine_add_file(weft_engine* engine, const char* path, uint64_t offset,
                                        size_t bytes, const weft_file_options* options,
                                        weft_segment** segment, weft_error** error);

/// As weft_engine_add_own(), for memory that is used together with a GPU, such as a staging buffer.
/// Only NICs that serve the GPU at the PCI address `gpu` move it, and its pages come from the GPU's
/// NUMA node. WEFT_NOT_FOUND if there is no such GPU.
WEFT_API weft_code weft_engine_add_own_near(weft_engine* engine, size_t bytes, const char* gpu,
                                            weft_segment** segment, weft_error** error);
/// As weft_engine_adopt(), for such memory; its pages stay where they are.
WEFT_API weft_code weft_engine_adopt_near(weft_engine* engine, void* address, size_t bytes,
                                          const char* gpu, weft_segment** segment,
                                          weft_error** error);

/// Revokes all grants on the segment, waits until no peer and no transfer of this engine uses it,
/// and unregisters it. After WEFT_QUARANTINED or WEFT_TIMED_OUT don't reuse the memory.
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
/// (0: without end). `rights` is a WEFT_RIGHT_ value, `keys` a WEFT_KEYS_ value. When the time is
/// over, peers stop by themselves; the memory is free only after weft_grant_revoke() or
/// weft_segment_release(). Freeing the handle does not end the grant. A read under a grant that has
/// ended fails with WEFT_STALE.
WEFT_API weft_code weft_segment_grant(weft_segment* segment, const weft_range* ranges, size_t count,
                                      int32_t rights, int64_t ttl_ns, int32_t keys,
                                      weft_grant** grant, weft_error** error);
WEFT_API void weft_grant_free(weft_grant* grant);
/// The grant in serialised form, some hundred bytes, for weft_engine_import() in the peer's
/// process. It holds no pointers. Every process that has it can use it.
WEFT_API const void* weft_grant_blob(const weft_grant* grant);
WEFT_API size_t weft_grant_blob_size(const weft_grant* grant);
/// Identifies the grant within its engine.
WEFT_API uint64_t weft_grant_lease_id(const weft_grant* grant);
/// Extends the grant to at least `ttl_ns` from now (0: without end). Keys and imports stay good.
/// WEFT_STALE if it holds no more. See weft::Grant::renew().
WEFT_API weft_code weft_grant_renew(weft_grant* grant, int64_t ttl_ns, weft_error** error);
/// Ends the grant: transfers under it end as stale; peers that may write stop, drain their
/// operations and confirm. WEFT_OK: the memory may be reused. WEFT_QUARANTINED: a peer did not
/// confirm in time, so the memory stays registered; don't reuse it. May be called again.
WEFT_API weft_code weft_grant_revoke(weft_grant* grant, int64_t timeout_ns, weft_error** error);
/// The same without waiting: closes the grant's keys, so that operations of peers are refused on
/// arrival. WEFT_UNSUPPORTED if a rail can't cut off one grant alone.
WEFT_API weft_code weft_grant_fence(weft_grant* grant, int64_t timeout_ns, weft_error** error);
/// The same, but each rail that can't cut off one grant alone is closed and opened again, as by
/// weft_engine_reopen(), which hurts other peers on it. WEFT_UNSUPPORTED if a rail can't be.
WEFT_API weft_code weft_grant_fence_rails(weft_grant* grant, int64_t timeout_ns,
                                          weft_error** error);

/// Reads a grant of a connected peer. WEFT_STALE if it was revoked, or that engine was restarted.
WEFT_API weft_code weft_engine_import(weft_engine* engine, const void* blob, size_t bytes,
                                      weft_remote** remote, weft_error** error);
/// Makes a grant known to every peer under a name of at most 255 bytes. Replaces an earlier grant
/// of that name.
WEFT_API weft_code weft_engine_publish(weft_engine* engine, const char* name,
                                       const weft_grant* grant, weft_error** error);
/// Asks a peer for a grant by name, and waits until it is published there.
WEFT_API weft_code weft_peer_lookup(const weft_peer* peer, const char* name, int64_t timeout_ns,
                                    weft_remote** remote, weft_error** error);

WEFT_API void weft_remote_free(weft_remote* remote);
/// Name of the engine that owns the memory.
WEFT_API const char* weft_remote_peer(const weft_remote* remote);
/// Size of the peer's segment, in bytes. Offsets count from its start.
WEFT_API uint64_t weft_remote_segment_size(const weft_remote* remote);
/// A WEFT_RIGHT_ value; 0 for NULL.
WEFT_API int32_t weft_remote_rights(const weft_remote* remote);
WEFT_API weft_code weft_remote_place(const weft_remote* remote, weft_place* place,
                                     weft_error** error);
/// The granted ranges, sorted by offset.
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

/// Pages of a paged cache: piece i is page `local_pages[i]` here and page `remote_pages[i]` there.
/// Page p starts at `base + p * stride`. Both lists have `count` numbers.
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

/// The state of a transfer. It ends in exactly one of the last four.
enum {
  WEFT_STATE_ACTIVE = 0,
  WEFT_STATE_DONE = 1,
  WEFT_STATE_FAILED = 2,
  WEFT_STATE_CANCELLED = 3,
  WEFT_STATE_TIMED_OUT = 4
};

/// A state's name in lower case, e.g. "done". Lives as long as the program.
WEFT_API const char* weft_state_name(int32_t state);

/// Called once at the end of a transfer, on a progress thread or inside a call that makes progress
/// or waits. It must be short and must not wait. `error` is NULL if the transfer is done, and
/// otherwise valid during the call only; don't free it.
typedef void (*weft_on_transfer)(void* context, uint64_t cookie, int32_t state,
                                 const weft_error* error);

typedef struct weft_transfer_options {
  size_t size;
  /// When to give up. 0: weft_config::default_timeout_ns. Negative: immediately.
  int64_t timeout_ns;
  uint64_t cookie;          ///< Returned in the callback and the event.
  bool event;               ///< Put an event into the engine's queue at the end.
  bool signal;              ///< Raise a signal at the target after all bytes are visible there.
  uint64_t signal_id;       ///< Chosen by the application; the peer expects the same number.
  const void* signal_data;  ///< Payload of the signal; copied at the call.
  size_t signal_bytes;      ///< At most weft_config::max_message.
  weft_on_transfer on_end;  ///< May be NULL.
  void* context;            ///< Passed to `on_end`.
  int32_t transport;        ///< A WEFT_TRANSPORT_ value.
  /// How long to wait for room if weft_config::max_transfers are under way; 0: not at all. In a
  /// callback it never waits.
  int64_t wait_for_room_ns;
  int32_t priority;  ///< A WEFT_PRIORITY_ value.
  /// Compares the bytes at both ends, by their XXH3, before the transfer ends and before its signal
  /// goes out. If they differ, it fails with WEFT_CORRUPT. Neither end may change them meanwhile.
  bool verify;
  /// A policy as in weft_config::policy, which must hold besides that one; otherwise the call fails
  /// with WEFT_POLICY_REFUSED. NULL: none.
  const char* policy;
  /// A CUDA event (CUevent or cudaEvent_t) that was recorded before this call. The transfer begins
  /// when the work before the event has ended. The event must be neither recorded again nor
  /// destroyed before the transfer has ended. NULL: the transfer begins immediately.
  void* after_gpu_event;
} weft_transfer_options;

/// Copies pieces of `source` (weft_pair::remote) into `target` (weft_pair::local), and waits:
/// between a file and host memory of one engine. See weft::Segment::copy_from. Not for callbacks.
WEFT_API weft_code weft_segment_copy(weft_segment* target, const weft_segment* source,
                                     const weft_pair* pairs, size_t count, int64_t timeout_ns,
                                     weft_error** error);

/// Checks ranges and rights once, and copies the list. It may be submitted any number of times,
/// whole or by index. `direction` is WEFT_WRITE or WEFT_READ.
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

/// Starts the pieces of `prepared` whose indices are in `picks`. Does not block, unless `options`
/// ask to wait for room. `options` may be NULL, here and below.
WEFT_API weft_code weft_engine_submit(weft_engine* engine, const weft_prepared* prepared,
                                      const uint32_t* picks, size_t count,
                                      const weft_transfer_options* options,
                                      weft_transfer** transfer, weft_error** error);
/// Starts all pieces of `prepared`.
WEFT_API weft_code weft_engine_submit_all(weft_engine* engine, const weft_prepared* prepared,
                                          const weft_transfer_options* options,
                                          weft_transfer** transfer, weft_error** error);
/// The hardware or program that moves bytes from one place to the next.
enum {
  WEFT_MOVER_NIC = 0,          ///< By DMA. The others make copies from memory to memory.
  WEFT_MOVER_COPY_ENGINE = 1,  ///< Of a GPU.
  WEFT_MOVER_CPU = 2,          ///< A process itself.
  WEFT_MOVER_KERNEL = 3,  ///< Into and out of sockets, between processes, out of the page cache
                          ///< of files; a CPU too.
  WEFT_MOVER_DRIVE = 4    ///< By DMA, as a NIC does.
};

/// A place on the way of bytes.
enum {
  WEFT_STOP_HOST = 0,    ///< Host memory of a segment.
  WEFT_STOP_DEVICE = 1,  ///< A GPU's memory.
  WEFT_STOP_BOUNCE_BUFFER = 2,
  WEFT_STOP_PROVIDER_BUFFER = 3,
  WEFT_STOP_SOCKET_BUFFER = 4,
  WEFT_STOP_NIC = 5,
  WEFT_STOP_WIRE = 6,
  WEFT_STOP_FILE = 7,
  WEFT_STOP_FILE_BUFFER = 8  ///< Host memory that a drive reads and writes.
};

/// The side that a place or a copy belongs to.
enum { WEFT_SIDE_LOCAL = 0, WEFT_SIDE_REMOTE = 1, WEFT_SIDE_BETWEEN = 2 };

/// What a transfer would do, as the providers declare it. Nothing is measured.
typedef struct weft_path weft_path;

typedef struct weft_path_summary {
  size_t size;
  int32_t transport;     ///< WEFT_TRANSPORT_*, but not WEFT_TRANSPORT_AUTOMATIC.
  const char* provider;  ///< This and the other texts live as long as the path.
  bool same_host;        ///< Both sides are proven to be on one machine.
  bool gpudirect_local;  ///< The memory is a GPU's, and a NIC reads or writes it itself.
  bool gpudirect_remote;
  uint32_t copies;  ///< Of each byte, from memory to memory, on both sides together.
  uint32_t copies_local;
  uint32_t copies_remote;
  uint32_t cpu_copies;  ///< The copies that a CPU makes.
  /// Pieces of fewer bytes are also bounced by the CPU, so often as the two numbers below say. 0:
  /// no piece is.
  uint64_t bounced_below;
  uint32_t bounces_local;
  uint32_t bounces_remote;
  double gbps;          ///< Speed of the slowest link on the way; 0: unknown.
  const char* limit;    ///< That link, or why the speed is unknown.
  const char* refused;  ///< The policy that does not allow the path, and why; "": all allow it.
  size_t hop_count;
  size_t not_used_count;
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
  int32_t side;  ///< The side that makes it, a WEFT_SIDE_ value.
  bool copies;   ///< It is a copy from memory to memory.
} weft_hop;

/// The path that a transfer would take now, and whether policies allow it. Moves nothing.
WEFT_API weft_code weft_engine_explain(const weft_engine* engine, const weft_segment* local,
                                       const weft_remote* remote, int32_t direction,
                                       const weft_transfer_options* options, weft_path** path,
                                       weft_error** error);
WEFT_API void weft_path_free(weft_path* path);
WEFT_API weft_code weft_path_get(const weft_path* path, weft_path_summary* summary,
                                 weft_error** error);
WEFT_API weft_code weft_path_hop(const weft_path* path, size_t index, weft_hop* hop,
                                 weft_error** error);
/// Why a better path is not used; NULL for an index out of range. Lives as long as the path.
WEFT_API const char* weft_path_not_used(const weft_path* path, size_t index);

/// Prepares and submits in one.
WEFT_API weft_code weft_engine_write(weft_engine* engine, const weft_segment* local,
                                     const weft_remote* remote, const weft_pair* pairs,
                                     size_t count, const weft_transfer_options* options,
                                     weft_transfer** transfer, weft_error** error);
WEFT_API weft_code weft_engine_read(weft_engine* engine, const weft_segment* local,
                                    const weft_remote* remote, const weft_pair* pairs, size_t count,
                                    const weft_transfer_options* options, weft_transfer** transfer,
                                    weft_error** error);
/// Connects the NICs that would carry transfers between the two, ahead of the first. See
/// weft::Engine::warm.
WEFT_API weft_code weft_engine_warm(weft_engine* engine, const weft_segment* local,
                                    const weft_remote* remote, const weft_transfer_options* options,
                                    weft_transfer** transfer, weft_error** error);

/// Neither waits nor cancels: the transfer goes on.
WEFT_API void weft_transfer_free(weft_transfer* transfer);
/// A WEFT_STATE_ value; -1 for NULL.
WEFT_API int32_t weft_transfer_state(const weft_transfer* transfer);
/// True when nothing touches the local memory for this transfer any more. A transfer that has ended
/// may still not be quiescent, for example after its deadline.
WEFT_API bool weft_transfer_quiescent(const weft_transfer* transfer);
/// Waits for the end. WEFT_OK if the transfer is done; otherwise the error that ended it.
/// WEFT_TIMED_OUT if the timeout passes first; then the transfer goes on. The caller may carry
/// bytes of this and other transfers meanwhile, and so call their callbacks.
WEFT_API weft_code weft_transfer_wait(weft_transfer* transfer, int64_t timeout_ns,
                                      weft_error** error);
/// As weft_transfer_wait(), then until it is quiescent.
WEFT_API weft_code weft_transfer_wait_quiescent(weft_transfer* transfer, int64_t timeout_ns,
                                                weft_error** error);
/// Asks for an early end. Pieces that are not posted stay so, posted ones drain; then the transfer
/// ends as cancelled, or as done if all had been posted. Never blocks.
WEFT_API weft_code weft_transfer_cancel(weft_transfer* transfer, weft_error** error);

/// The work of a transfer so far, or in all once it has ended.
typedef struct weft_report {
  size_t size;
  int32_t state;        ///< A WEFT_STATE_ value. weft_transfer_wait() has the error, if any.
  int32_t transport;    ///< A WEFT_TRANSPORT_ value.
  uint64_t bytes;       ///< Requested.
  uint64_t bytes_done;  ///< Completed.
  uint64_t ranges;      ///< Requested pieces.
  uint64_t runs;        ///< Pieces after coalescing of neighbours.
  uint64_t operations;  ///< Chunks handed to transports.
  int64_t elapsed_ns;   ///< From submission to the end, or to now.
  size_t rail_count;    ///< Rails that carried it: weft_transfer_rail_share().
  char fallback[256];   ///< The beginning of weft_peer_fallback(); "" if it is empty.
  uint64_t retries;     ///< Chunks that failed and were offered again.
  int64_t queued_ns;    ///< From submission until a rail took the first chunk.
  int64_t carried_ns;   ///< From then until the last chunk completed.
  size_t copied_count;  ///< Copies from memory to memory: weft_transfer_copied().
  /// Copied bytes on both sides for each byte that was carried, as far as known; 0 if none was.
  double amplification;
} weft_report;

/// How it is known that bytes were copied.
enum {
  WEFT_COPIED_COUNTED = 0,   ///< This engine made the copy, or had it made.
  WEFT_COPIED_DECLARED = 1,  ///< The provider says that it copies; times the bytes carried.
  WEFT_COPIED_UNKNOWN = 2    ///< It may have been made; how often is unknown.
};
/// A copy of a transfer's bytes from memory to memory.
typedef struct weft_copied {
  int32_t known;   ///< A WEFT_COPIED_ value.
  int32_t by;      ///< A WEFT_MOVER_ value.
  bool at_peer;    ///< On the peer's side; else on this side, or between the two.
  uint64_t bytes;  ///< 0 if unknown.
} weft_copied;

/// The share of one rail in a transfer.
typedef struct weft_rail_share {
  char rail[64];  ///< Its name, e.g. "tcp:0".
  uint64_t operations;
  uint64_t bytes;
} weft_rail_share;

/// Fills `report`, whose `size` must be set.
WEFT_API weft_code weft_transfer_report(const weft_transfer* transfer, weft_report* report,
                                        weft_error** error);
/// The outcome of one piece of a transfer that has ended.
enum {
  WEFT_PLACED_ALL = 0,     ///< Every byte is in its place.
  WEFT_PLACED_NONE = 1,    ///< No byte was moved.
  WEFT_PLACED_UNKNOWN = 2  ///< Some bytes may be in place, or may still arrive.
};
/// Fills `placed` with a WEFT_PLACED_ value for each piece, in the order of the submission; `count`
/// must be their number (weft_report::ranges).
WEFT_API weft_code weft_transfer_placed(const weft_transfer* transfer, uint8_t* placed,
                                        size_t count, weft_error** error);
/// The share of a rail; `index` is less than weft_report::rail_count.
WEFT_API weft_code weft_transfer_rail_share(const weft_transfer* transfer, size_t index,
                                            weft_rail_share* share, weft_error** error);
/// A copy; `index` is less than weft_report::copied_count.
WEFT_API weft_code weft_transfer_copied(const weft_transfer* transfer, size_t index,
                                        weft_copied* copied, weft_error** error);
/// @}

/// @name Signals and messages
/// @{

/// Called once when an expectation or a receive has ended; `error` is NULL on success. On a
/// progress thread, under the rules of weft_on_transfer; don't free `error`.
typedef void (*weft_on_arrival)(void* context, uint64_t cookie, const weft_error* error);

/// What becomes of signals that come after their expectation has ended without them (see
/// weft::Late).
enum {
  WEFT_LATE_KEEP = 0,  ///< The next expectation gets them; the oldest are dropped for want of room.
  WEFT_LATE_HOLD = 1,  ///< The next expectation gets them; the peer is held back for want of room.
  WEFT_LATE_DROP = 2   ///< They are dropped until the id is expected again.
};

/// How an expectation or a receive reports its end, besides its wait function.
typedef struct weft_notify_options {
  size_t size;
  uint64_t cookie;
  bool event;              ///< Put an event into the engine's queue.
  weft_on_arrival on_end;  ///< May be NULL.
  void* context;           ///< Passed to `on_end`.
  /// Ends it as WEFT_TIMED_OUT for good, so long after the call. 0: it does not end by itself; with
  /// a stream, after weft_config::default_timeout_ns.
  int64_t timeout_ns;
  /// If `on_stream`: work that is put on this CUDA stream after the call begins when this has
  /// ended, with an error or without (see weft::NotifyOptions::gpu_stream).
  bool on_stream;
  void* gpu_stream;
  int32_t late;  ///< Of expectations: a WEFT_LATE_ value.
} weft_notify_options;

/// Raises a signal at the peer without moving data. `data` may be NULL if `bytes` is 0.
WEFT_API weft_code weft_peer_signal(const weft_peer* peer, uint64_t id, const void* data,
                                    size_t bytes, int64_t timeout_ns, weft_error** error);
/// Waits for `count` (at least 1) signals `id` from `peer`. Signals that came before the call
/// count. Each signal goes to one expectation, the oldest first. `options` may be NULL.
WEFT_API weft_code weft_peer_expect(const weft_peer* peer, uint64_t id, uint64_t count,
                                    const weft_notify_options* options,
                                    weft_expectation** expectation, weft_error** error);
/// Gives up the expectation; the signals that it has collected are dropped.
WEFT_API void weft_expectation_free(weft_expectation* expectation);
WEFT_API bool weft_expectation_ready(const weft_expectation* expectation);
/// WEFT_OK: all have arrived. WEFT_REMOTE_FAILED, WEFT_PEER_DOWN: they can't arrive any more.
/// WEFT_TIMED_OUT: the expectation stands, and may be waited for again. WEFT_QUEUE_FULL: signals
/// that came for the id while nobody expected it were dropped.
WEFT_API weft_code weft_expectation_wait(weft_expectation* expectation, int64_t timeout_ns,
                                         weft_error** error);
/// After a successful wait: how many of the signals carried bytes.
WEFT_API size_t weft_expectation_payload_count(const weft_expectation* expectation);
/// The payload of one of them, in the order of arrival; `bytes` may be NULL.
WEFT_API const void* weft_expectation_payload(const weft_expectation* expectation, size_t index,
                                              size_t* bytes);

/// Forgets the signal ids from `first` to `last`, both included: drops what has arrived of them,
/// and what arrives until one is expected again (see weft::Peer::forget).
WEFT_API weft_code weft_peer_forget(const weft_peer* peer, uint64_t first, uint64_t last,
                                    weft_error** error);

/// Sends a tagged message. Returns when the bytes are copied into the send queue of the peer; waits
/// while that is full, then fails with WEFT_QUEUE_FULL. Messages to one peer are matched in order.
WEFT_API weft_code weft_peer_send(const weft_peer* peer, uint64_t tag, const void* data,
                                  size_t bytes, int64_t timeout_ns, weft_error** error);
/// Asks for the next message whose tag equals `tag` in the bits set in `mask`, from `peer`.
/// `options` may be NULL.
WEFT_API weft_code weft_peer_receive(const weft_peer* peer, uint64_t tag, uint64_t mask,
                                     const weft_notify_options* options, weft_receive** receive,
                                     weft_error** error);
/// weft_peer_receive() and weft_receive_wait() in one: the message is in `receive`. On
/// WEFT_TIMED_OUT the request is given up.
WEFT_API weft_code weft_peer_recv(const weft_peer* peer, uint64_t tag, uint64_t mask,
                                  int64_t timeout_ns, weft_receive** receive, weft_error** error);
/// Gives up the request, or the message that answered it.
WEFT_API void weft_receive_free(weft_receive* receive);
WEFT_API bool weft_receive_ready(const weft_receive* receive);
/// As weft_expectation_wait().
WEFT_API weft_code weft_receive_wait(weft_receive* receive, int64_t timeout_ns, weft_error** error);
/// After a successful wait: the message's parts. Before it they are 0 and NULL.
WEFT_API uint64_t weft_receive_tag(const weft_receive* receive);
/// Name of the sender.
WEFT_API const char* weft_receive_peer(const weft_receive* receive);
/// The message's bytes; NULL if it has none.
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
  weft_error* error;  ///< NULL on success; otherwise the caller frees it.
  char peer[256];     ///< Name of the peer concerned.
} weft_event;

/// Makes one round of progress: see weft::Engine::progress(). `operations`, unless NULL, is set to
/// the number of operations that ended. One thread at a time does the work; others get 0 at once.
WEFT_API weft_code weft_engine_progress(weft_engine* engine, size_t* operations,
                                        weft_error** error);
/// Takes up to `capacity` events without waiting, and sets `count` to their number.
WEFT_API weft_code weft_engine_poll(weft_engine* engine, weft_event* events, size_t capacity,
                                    size_t* count, weft_error** error);
/// Readable while events are queued (an eventfd: for poll and epoll; do not read it). Belongs to
/// the engine.
WEFT_API int weft_engine_event_fd(const weft_engine* engine);
/// @}

/// @name KV caches
/// Layouts of paged KV caches, and the copies that move blocks between caches of different shapes.
/// Arithmetic only: no memory is touched. kv.hpp explains the words.
/// @{

typedef struct weft_kv_layout weft_kv_layout;  ///< The shape of one process's cache; immutable.
typedef struct weft_kv_cache weft_kv_cache;    ///< A layout that has a place in memory.
typedef struct weft_kv_plan weft_kv_plan;      ///< A list of copies that moves some blocks.

/// Type of an element.
enum {
  WEFT_KV_BF16 = 0,
  WEFT_KV_FP8 = 1,  ///< e4m3.
  WEFT_KV_FP16 = 2,
  WEFT_KV_FP32 = 3,
  WEFT_KV_FP8_E5M2 = 4,
  WEFT_KV_FP4 = 5,   ///< e2m1, two in a byte.
  WEFT_KV_E8M0 = 6,  ///< The scales of mxfp8 and mxfp4.
  WEFT_KV_INT8 = 7
};

/// Where the fields of a block lie.
enum {
  WEFT_KV_SPLIT = 0,  ///< Each in a pool of its own: all blocks' keys, then all blocks' values.
  WEFT_KV_FUSED = 1   ///< Those of a block behind one another.
};

/// The outer dimension of the layout.
enum { WEFT_KV_LAYER_MAJOR = 0, WEFT_KV_BLOCK_MAJOR = 1 };

/// The order inside a page.
enum {
  WEFT_KV_NHD = 0,  ///< [rows][heads][vector].
  WEFT_KV_HND = 1   ///< [heads][rows][vector].
};

/// How many regions (tensors) a group is allocated in.
enum {
  WEFT_KV_REGION_ONE = 0,                 ///< One for the whole group.
  WEFT_KV_REGION_PER_LAYER = 1,           ///< One for each layer. Needs layer-major.
  WEFT_KV_REGION_PER_FIELD = 2,           ///< One for keys, one for values. Needs split.
  WEFT_KV_REGION_PER_LAYER_AND_FIELD = 3  ///< One for each layer's keys and values. Needs both.
};

/// Neighbouring elements of one type.
typedef struct weft_kv_piece {
  int32_t type;  ///< WEFT_KV_BF16 and so on.
  uint32_t elements;
} weft_kv_piece;

/// What a layer keeps under one name, as kv::Field.
typedef struct weft_kv_field {
  const char* name;             ///< E.g. "keys"; the same on both sides.
  const weft_kv_piece* pieces;  ///< One head's vector in one row.
  size_t piece_count;
  uint32_t heads;           ///< Of the model, before tensor parallelism. 1 for latents.
  uint32_t tokens_per_row;  ///< 0: 1.
  uint32_t rows;            ///< In a group of states. 0: 1.
  bool beside;              ///< Lies beside the field before it, row by row.
} weft_kv_field;

/// One rank among those that serve a model, as kv::Parallel. A size of 0 is 1.
typedef struct weft_kv_parallel {
  size_t size;
  uint32_t tp_size;  ///< Tensor parallelism: a multiple or a divisor of each field's heads.
  uint32_t tp_rank;
  uint32_t dcp_size;        ///< Decode context parallelism; its ranks are among those above.
  uint32_t dcp_interleave;  ///< Tokens that stay together. 0: 1.
  uint32_t dp_size;         ///< Replicas of attention, each of which holds its own requests.
  uint32_t dp_rank;
} weft_kv_parallel;

/// A known model's KV shape. The strings live as long as the program.
typedef struct weft_kv_model {
  size_t size;
  const char* name;  ///< E.g. "Llama-3.1-8B".
  const char* id;    ///< On the Hugging Face hub, e.g. "meta-llama/Llama-3.1-8B".
  uint32_t layers;
  uint64_t bytes_per_token_bf16;  ///< In all layers of the whole model; windows not considered.
  uint64_t state_bytes;           ///< Of one request, in all layers of the whole model.
} weft_kv_model;

WEFT_API size_t weft_kv_model_count(void);
/// Fills `model`, whose `size` must be set, here and below.
WEFT_API weft_code weft_kv_model_at(size_t index, weft_kv_model* model, weft_error** error);
/// The model of that name or id; letters' case is ignored.
WEFT_API weft_code weft_kv_find_model(const char* name, weft_kv_model* model, weft_error** error);

/// The parts of a layout that the serving engine chooses.
typedef struct weft_kv_layout_options {
  size_t size;
  int32_t dtype;              ///< Of attention and latents; indices and states have their own.
  int32_t placement;          ///< WEFT_KV_SPLIT or WEFT_KV_FUSED.
  int32_t order;              ///< WEFT_KV_LAYER_MAJOR or WEFT_KV_BLOCK_MAJOR.
  int32_t head_order;         ///< WEFT_KV_NHD or WEFT_KV_HND.
  int32_t regions;            ///< A WEFT_KV_REGION_ value.
  uint32_t tokens_per_block;  ///< 0: 16.
  uint32_t blocks;            ///< In each group.
  uint32_t state_blocks;      ///< In each group of states. 0: as many as `blocks`.
  uint32_t first_layer;       ///< Of this pipeline stage,
  uint32_t layer_count;       ///< and how many it has. 0: all.
  uint64_t block_padding;     ///< Unused bytes after each block.
  uint64_t block_alignment;   ///< Distances of blocks are rounded up to a multiple of it. 0: 1.
  const weft_kv_parallel* parallel;  ///< NULL: one rank.
} weft_kv_layout_options;

/// Layers that share one block table, for models that are not known by name.
typedef struct weft_kv_group {
  size_t size;
  const uint32_t* layers;  ///< Numbers of the model's layers, ascending, from 0.
  size_t layer_count;
  const weft_kv_field* fields;
  size_t field_count;
  uint32_t blocks;            ///< In the cache; block ids are less than this.
  uint32_t tokens_per_block;  ///< 0: the group holds states, one block for each request.
  uint32_t window;            ///< Tokens that the layers look back on; 0 for all.
  int32_t placement;
  int32_t order;
  int32_t head_order;
  int32_t regions;
  uint64_t block_padding;
  uint64_t block_alignment;  ///< 0: 1.
} weft_kv_group;

/// The layout of one rank of a known model: a group for each kind of layers.
WEFT_API weft_code weft_kv_layout_of_model(const char* model, const weft_kv_layout_options* options,
                                           weft_kv_layout** layout, weft_error** error);
/// The same from a model's config.json, `bytes` long, as kv::from_config reads it.
WEFT_API weft_code weft_kv_layout_of_config(const char* json, size_t bytes,
                                            const weft_kv_layout_options* options,
                                            weft_kv_layout** layout, weft_error** error);
/// A layout of `count` groups given one by one. `parallel` NULL: one rank.
WEFT_API weft_code weft_kv_layout_create(const weft_kv_group* const* groups, size_t count,
                                         const weft_kv_parallel* parallel, weft_kv_layout** layout,
                                         weft_error** error);
WEFT_API void weft_kv_layout_free(weft_kv_layout* layout);
WEFT_API size_t weft_kv_layout_group_count(const weft_kv_layout* layout);

/// What blocks are needed in a group.
typedef struct weft_kv_group_info {
  size_t size;
  const uint32_t* layers;  ///< Lives as long as the layout.
  size_t layer_count;
  uint32_t blocks;
  uint32_t tokens_per_block;  ///< 0: one block for each request.
  uint32_t window;
} weft_kv_group_info;

/// Fills `info`, whose `size` must be set.
WEFT_API weft_code weft_kv_layout_group(const weft_kv_layout* layout, size_t index,
                                        weft_kv_group_info* info, weft_error** error);
/// Number of regions to allocate: group by group, in each layer by layer, field by field.
WEFT_API size_t weft_kv_layout_region_count(const weft_kv_layout* layout);
/// Size of one of them, in bytes.
WEFT_API uint64_t weft_kv_layout_region_bytes(const weft_kv_layout* layout, size_t index);
/// All regions together, in bytes.
WEFT_API uint64_t weft_kv_layout_bytes(const weft_kv_layout* layout);
/// Bytes of one token on this rank in all layers, without padding and states.
WEFT_API uint64_t weft_kv_layout_bytes_per_token(const weft_kv_layout* layout);
/// Bytes of one request's states on this rank in all layers, without padding.
WEFT_API uint64_t weft_kv_layout_state_bytes(const weft_kv_layout* layout);
/// The layers of pipeline stage `rank` of `size`, as vLLM deals them out. No layers if there is no
/// such stage.
WEFT_API void weft_kv_stage_layers(uint32_t layers, uint32_t size, uint32_t rank, uint32_t* first,
                                   uint32_t* count);

/// Tokens `first` to `first + count - 1` of a request.
typedef struct weft_kv_token_range {
  uint64_t first;
  uint64_t count;
} weft_kv_token_range;

/// A source rank: its pipeline stage, its rank in that, and the replica of attention.
typedef struct weft_kv_rank {
  uint32_t pp;
  uint32_t tp;
  uint32_t dp;
} weft_kv_rank;

/// Writes up to `capacity` source ranks that have bytes for the rank of `dst`, ascending, and sets
/// `count` to the number of all. `stages` has the layout of any rank of each pipeline stage.
/// Without `tokens` (NULL), for a request of any length; all layers if `layer_count` is 0.
WEFT_API weft_code weft_kv_source_ranks(const weft_kv_layout* const* stages, size_t stage_count,
                                        const weft_kv_layout* dst,
                                        const weft_kv_token_range* tokens, uint32_t first_layer,
                                        uint32_t layer_count, weft_kv_rank* ranks, size_t capacity,
                                        size_t* count, weft_error** error);

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

/// The blocks of one request in one group, on one side, as kv::Blocks.
typedef struct weft_kv_blocks {
  const uint32_t* ids;  ///< In token order; at the destination without repetitions.
  size_t count;
  uint64_t first_token;               ///< With which the first of them begins.
  const weft_kv_token_range* tokens;  ///< Of the destination's group; NULL: the request's.
} weft_kv_blocks;

/// The identity of a block's content, as kv::BlockHash.
typedef struct weft_kv_hash {
  uint8_t bytes[32];
} weft_kv_hash;

/// The tokens that a destination lacks in group `group` of its layout, as kv::missing().
WEFT_API weft_code weft_kv_missing(const weft_kv_layout* layout, size_t group,
                                   const weft_kv_hash* offered, size_t offered_count,
                                   const weft_kv_hash* held, size_t held_count,
                                   uint32_t tokens_per_hash, uint64_t tokens,
                                   weft_kv_token_range* missing, weft_error** error);

/// `length` bytes from one place to another.
typedef struct weft_kv_copy {
  uint32_t src_region;
  uint32_t dst_region;
  uint64_t src_offset;
  uint64_t dst_offset;
  uint64_t length;
} weft_kv_copy;

/// The copies that bring `tokens` of a request from one source rank to one destination rank, in
/// layers `first_layer` to `first_layer + layer_count - 1` (all if `layer_count` is 0). Each side
/// has an entry of blocks for each of its groups.
WEFT_API weft_code weft_kv_plan_create(const weft_kv_cache* src, const weft_kv_blocks* src_blocks,
                                       size_t src_group_count, const weft_kv_cache* dst,
                                       const weft_kv_blocks* dst_blocks, size_t dst_group_count,
                                       weft_kv_token_range tokens, uint32_t first_layer,
                                       uint32_t layer_count, weft_kv_plan** plan,
                                       weft_error** error);
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
