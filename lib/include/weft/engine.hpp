/// @file
/// The engine: rails, threads and peers of one process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/memory.hpp>
#include <weft/message.hpp>
#include <weft/metrics.hpp>
#include <weft/nic_counters.hpp>
#include <weft/path.hpp>
#include <weft/policy.hpp>
#include <weft/topology.hpp>
#include <weft/transfer.hpp>

namespace weft {

class Engine;
struct Config;

namespace core {
class EngineState;
class PeerState;
class Peers;
class PieceList;
struct EngineHooks;
Result<Engine> open_engine(const Config& config, const EngineHooks& hooks);
}  // namespace core

/// Who drives the rails.
enum class Progress : std::uint8_t {
  threads,  ///< The engine's own threads.
  manual,   ///< The application, by Engine::progress(), inside every wait(), and for what is
            ///< small in submit() (Config::copy_at_once_bytes).
};

/// How an engine is set up. The defaults suit tests and laptops: loopback only, all providers.
///
/// Each field can also be given from outside the program: what the program leaves at its default is
/// taken from the environment (`rail_address` from WEFT_RAIL_ADDRESS), else from a TOML file
/// (`rail_address = "10.0.0.7"`), else is the default. In text, lists have commas between their
/// items, times a unit (`100us`), sizes may have one (`512KiB`). `weft info` shows where each value
/// came from.
struct Config {
  /// The TOML file. Empty: the one that WEFT_CONFIG_FILE names; where it names none, there is none.
  std::string config_file = {};
  /// Whether the environment completes what the program leaves at its default. False: it does not,
  /// and no variable names a file, so that what stands here is all. No option itself.
  bool use_environment = true;

  /// The engine's identity towards its peers, at most 255 bytes. Empty: made of host name, process
  /// and random digits. A name used again means the same service restarted: its older incarnation
  /// is declared dead by its peers.
  std::string name = {};

  /// Where peers reach this engine: "127.0.0.1:0", "[::1]:7000", "host:7000". Port 0 lets the
  /// system choose (Engine::address tells). Empty: this engine only connects to others.
  std::string listen = "127.0.0.1:0";
  /// The address told to peers where it differs from the one listened on (NAT, containers,
  /// 0.0.0.0).
  std::string advertise = {};
  /// Listening beyond loopback without authentication has to be asked for in so many words.
  bool allow_unauthenticated_network = false;

  /// @name Credentials
  /// With a secret or with certificates, of which an engine may have one, control connections are
  /// TLS 1.3, both sides prove themselves before anything else is said, and the engine may listen
  /// beyond loopback. The files are read when the engine is opened. What the rails carry is not
  /// encrypted by it.
  /// @{

  /// A file with the secret that all engines have which may meet: 16 bytes at least, without the
  /// end of line behind it; best 32 random bytes in text, since what can be guessed can be tried.
  /// Others than the file's owner and group must have no access to it. It proves to be one of the
  /// group, not which.
  std::string secret_file = {};
  /// This engine's certificate (with those between it and its authority behind it), its key (which
  /// others than the owner and group must not read, and without a passphrase), and the authorities
  /// whose certificates are taken, each as PEM. Any certificate of these authorities is a member,
  /// whatever its name: they should make none for anything else. Engines use theirs to listen and
  /// to connect, so extended key usages, where there are some, must allow both. There are no
  /// revocation lists.
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::string tls_authorities = {};
  /// An engine that connects also looks for the dialled host name or number among the subject
  /// alternative names of the other's certificate.
  bool tls_check_host = false;
  /// @}

  /// Local IP address whose interface carries the tcp rails. Empty: that of `advertise`, else of
  /// `listen`, else loopback.
  std::string rail_address = {};

  /// Providers to use, best first: "shm", "efa", "verbs", "tcp", "fi_shm" (libfabric's shm, which
  /// is taken only if it is named). "^tcp" forbids one. With no name in it: all but fi_shm and
  /// those forbidden, in this order. What is named and can't be had is an error.
  ///
  /// libfabric may have one of these in several ways, of which the best that is there is taken:
  /// tcp as "net", "tcp" or "tcp;ofi_rxm", efa as "efa-direct" or "efa". libfabric's own name
  /// stands for that way alone, and "^efa-direct" forbids it alone; of several that are named, the
  /// first that is there is taken. A name that is also one of the five above ("tcp") means the
  /// whole.
  std::vector<std::string> providers = {};
  /// NICs to use, by the names of their libfabric domains ("rdmap79s0") or patterns of them
  /// ("rdmap*"), best first; "^eth0" forbids one. A name or pattern that fits none is an error.
  std::vector<std::string> nics = {};
  /// Most NICs of one provider, the nearest first, unless `nics` names them. 4 is what a GPU has to
  /// itself on the instances with the most NICs (p5.48xlarge).
  unsigned max_nics = 4;
  /// The GPUs whose memory this process moves, by their PCI addresses ("0000:53:00.0"): the NICs
  /// that serve them are opened, up to `max_nics` for each. Empty: those nearest to the process's
  /// cores.
  std::vector<std::string> gpus = {};
  /// A file with the machine's topology in hwloc's XML, for use instead of this machine's (see
  /// load_topology): where a container hides it, or for tests.
  std::string topo_xml = {};
  /// Memory is registered with the rails that serve the place where it lies (see affinity), and
  /// moved by them alone. True: with all rails, and moved by all.
  bool register_everywhere = false;
  /// Processes of this host, of engines that this one has met, may map the GPU memory that they are
  /// granted, and this process maps theirs: bytes go from GPU to GPU in one copy (CUDA IPC). What
  /// is mapped is the whole allocation that the memory is in; who has it keeps to the grant by
  /// himself.
  bool share_gpu_memory = true;
  /// Progress threads keep to the cores near their NICs, of those that the process may use. Without
  /// effect on a machine with one NUMA node, but where the rails over sockets have no core for each
  /// of their ends (Tuning::FewCores::one_core): there a rail's thread keeps to one core, and
  /// leaves it while it carries what is small or others compute there. A thread that a callback
  /// starts inherits its cores.
  bool place_threads = true;
  /// Whether a NIC may be used whose provider builds reads or writes out of messages (EFA without
  /// RDMA): slower, and the target's CPU copies. The capability record says which do.
  bool allow_emulation = true;
  /// Rails per NIC. 0: as many as measured best for the NIC and the cores (perf/RESULTS.md); then
  /// memory that is mapped may keep to one of them (Tuning::FewCores::one_for_mapped).
  unsigned rails = 0;
  /// Progress threads, each owning one or more rails. 0: one per rail, at most one per core.
  unsigned threads = 0;
  Progress progress = Progress::threads;
  /// How long an idle progress thread polls before it sleeps, and a waiting thread before it gives
  /// its core away; see Engine::progress for what it does meanwhile. Five transfers of 64 KiB over
  /// loopback tcp take about as long. With something under way, or while peers' operations come in,
  /// a progress thread polls for a millisecond at least, and for up to 16 while they come in close
  /// together. Where others compute on its core no thread polls: each look would wait for the end
  /// of their time slices.
  Nanoseconds spin = std::chrono::microseconds(100);

  /// Most bytes per operation; 0: the rail's own best. Larger pieces are cut.
  std::uint64_t chunk_bytes = 0;
  /// Most bytes of a transfer, in up to 16 pieces, that may be copied before the call that submits
  /// it returns, over shm, where nothing has to be waited for: to hand it to a progress thread
  /// takes about as long. Where the peer's memory is mapped, from 64 KiB on the rail's progress
  /// thread copies about half of it, where it is awake: copies that come within 50 us of each other
  /// wake it, and so does each from 512 KiB on.
  ///
  /// Class latency always has it. Class normal has
  /// - all of it where the path has one rail, whose thread helps the caller, else a quarter:
  ///   transfers that are many at a time get on faster by several threads (measured by weft-perf,
  ///   window 16, each in memory of its own, two rails: 0.8 to 1.0 times as fast at 64 KiB, with a
  ///   twentieth of the p99; 0.6 times at 256 KiB);
  /// - four times as much if no other transfer is under way and none that was copied so is still to
  ///   be looked at (its state, a wait, its report) or let go;
  /// - 64 times as much under that condition with one rail or two, if moreover the application was
  ///   seen to wait for what is larger than that as soon as it had it (within 50 us, as long as
  ///   2 MiB take), for 5 ms or more: it loses nothing by a submit() that takes as long as the wait
  ///   would, but for cancel(). A deadline is kept to within a MiB.
  ///
  /// What asks for an event has no more than the quarter, class bulk nothing, and nobody in
  /// callbacks.
  ///
  /// Where memory is not mapped the kernel copies it for the caller: of class latency, and of class
  /// normal four times as much under the condition above, without an event; unless a signal or a
  /// check follows.
  ///
  /// Under Progress::manual class normal always has it too; and what is not mapped is handed to the
  /// NIC by the call, up to the same sizes (class normal: a quarter), where nothing waits for the
  /// rail, nobody makes progress just then and it is no GPU's copy: a few operations of it.
  ///
  /// What one rail's thread carries, of any class, is copied by whoever waits for it as well, until
  /// the deadline of the wait: what is larger than a quarter of this where the path has one rail,
  /// than four times as much where it has several. Who waits and finds nothing left of it goes on
  /// with what else is there to be carried so, the most urgent first, for as long as there is any
  /// and what it waits for has not ended. 0: callers copy nothing, and leave all to the threads.
  std::uint64_t copy_at_once_bytes = 256 * 1024;
  /// Operations in flight per rail and peer; 0: the rail's own best. When it is full, transfers of
  /// Priority::latency may have an eighth of it on top, at least one operation.
  std::size_t window = 0;
  TransportKind transport = TransportKind::automatic;

  /// @name Policies
  /// What the paths of transfers must be like: see Policy. All that concern a transfer must hold.
  /// In the environment they are text (WEFT_POLICY=max_copies=0,forbid_cpu_copies), in the file
  /// tables: [policy], [policy.latency], [policy.bulk], [policy.peers."NAME"].
  /// @{

  /// Of all transfers. Providers that it does not allow are not even opened.
  Policy policy = {};
  /// Of those of class latency, and of class bulk (Priority).
  Policy latency_policy = {};
  Policy bulk_policy = {};
  /// Of those with the peer of a name. As text: "NAME: POLICY; NAME: POLICY".
  std::map<std::string, Policy> peer_policies = {};
  /// @}

  /// Bounce buffers: size of one, and how many a rail keeps for each peer and way.
  /// Small pieces of a transfer share one.
  std::size_t bounce_buffer_bytes = 256 * 1024;
  std::size_t bounce_buffers = 4;

  /// Largest message or signal payload that this engine accepts, in bytes (up to 1 MiB).
  std::size_t max_message = 8 * 1024;
  /// Messages that a peer may have under way to this engine at a time (2 to 1024).
  std::size_t message_credits = 32;
  /// Signals and messages nobody has asked for yet, in bytes per peer: beyond it the peer is held
  /// back, and nothing is lost.
  std::size_t unclaimed_bytes = std::size_t{64} << 20;
  /// Messages waiting to be sent, per peer: beyond it calls return `queue_full`.
  std::size_t send_queue = 4096;
  /// Transfers under way, and events not yet polled: beyond either submit() returns `queue_full`,
  /// for the former after TransferOptions::wait_for_room.
  std::size_t max_transfers = 1 << 16;
  /// Put an Event into the queue when a peer comes up or goes down.
  bool peer_events = false;

  /// Whether ended transfers are counted: Engine::metrics_text(), snapshot(), slowest_transfers().
  bool metrics = true;
  /// Where the metrics can also be read over HTTP, without authentication and encryption:
  /// "127.0.0.1:9400" (port 0 lets the system choose: Engine::metrics_address tells), or a Unix
  /// socket that the processes of this user alone can connect to, "unix:/run/weft-%p.sock", where
  /// %p stands for the process's number. An address that the environment or the file gives, and
  /// that another process has, costs this engine its endpoint and a warning; elsewhere it is an
  /// error. There are /metrics in Prometheus's text format and /snapshot in JSON. Beyond loopback
  /// only with allow_unauthenticated_network. Empty: nowhere.
  std::string metrics_listen = {};

  /// Deadline of a transfer that names none.
  Nanoseconds default_timeout = std::chrono::seconds(30);
  /// Control connections: interval of heartbeats, and the silence that means death.
  Nanoseconds heartbeat = std::chrono::milliseconds(500);
  Nanoseconds death_after = std::chrono::seconds(2);
};

/// Sets the field of that name from text, as it would be written in the environment:
/// `set_option(config, "providers", "efa,tcp")`. `not_found` if there is no such field,
/// `invalid_argument` if the text can't be read. What is set to its default is as if it was not
/// set: the environment and the file still count.
WEFT_API Result<void> set_option(Config& config, std::string_view name, std::string_view text);

/// Another engine, met over the control connection. Cheap to copy; stays valid when the peer is
/// gone, and a peer that comes back is a new Peer.
class WEFT_API Peer {
 public:
  Peer(const Peer&) = default;  // moving copies too: a handle is never empty
  Peer& operator=(const Peer&) = default;

  const std::string& name() const noexcept;
  /// Changes each time the engine of that name is opened.
  std::uint64_t incarnation() const noexcept;
  bool up() const noexcept;
  /// Why it is down; empty while up.
  std::optional<Error> why_down() const;
  /// Whether both were proven to be on one machine.
  bool same_host() const noexcept;
  /// Its control address as advertised.
  const std::string& address() const noexcept;
  /// Names of the local rails that transfers to this peer use, e.g. "shm:0".
  std::vector<std::string> rails() const;
  /// Why these, and why not better ones, as a sentence.
  const std::string& route_reason() const noexcept;
  /// Why a slower way is taken than one of the two has or seems to have; empty if none is. Also in
  /// the log, as a warning, when the two meet.
  const std::string& fallback() const noexcept;

 private:
  friend class Engine;
  friend class core::Peers;
  explicit Peer(std::shared_ptr<core::PeerState> state);
  std::shared_ptr<core::PeerState> state_;
};

/// Something that happened. See TransferOptions::event and NotifyOptions::event.
struct Event {
  enum class Kind : std::uint8_t {
    transfer_ended,
    signals_arrived,
    message_arrived,
    peer_up,
    peer_down
  };
  Kind kind = Kind::transfer_ended;
  std::uint64_t cookie = 0;
  State state = State::active;  ///< Of a transfer.
  std::string peer;             ///< Name of the peer concerned.
  std::optional<Error> error;
  /// Of peer_up: the peer itself. It stays valid, and what it sent can still be taken, if the peer
  /// has gone by the time that the event is polled.
  std::optional<Peer> who;
};

struct RailInfo {
  std::string name;  ///< E.g. "tcp:0".
  Capability capability;
  unsigned thread = 0;           ///< Index of the progress thread that owns it.
  std::uint64_t operations = 0;  ///< Completed since it was opened.
  std::uint64_t bytes = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t lost = 0;  ///< Operations whose peer died and that never came back.
  int numa_node = -1;      ///< Of its NIC; -1 where it can't be told.
};

/// One option as the engine uses it, and where its value came from.
struct Setting {
  enum class Source : std::uint8_t { standard, file, environment, call };
  std::string name;   ///< Of the field in Config.
  std::string value;  ///< As it would be written in the environment.
  Source source = Source::standard;
  std::string place;  ///< "WEFT_PROVIDERS", "weft.toml:3"; empty for the other two.
};

struct Info {
  std::string name;
  std::uint64_t incarnation = 0;
  std::string address;
  std::vector<RailInfo> rails;
  std::vector<Candidate> candidates;
  std::vector<Setting> settings;
  /// Why a slower way is taken than this machine seems to have; empty if none is.
  std::string fallback;
  std::uint64_t transfers_active = 0;
  std::uint64_t segments = 0;
};

/// Moves bytes between this process and its peers. All calls may be made from any thread unless
/// they say otherwise. In a forked child every call fails with `forked`.
class WEFT_API Engine {
 public:
  /// Opens rails and starts listening. Nothing is printed; see log.hpp.
  static Result<Engine> open(const Config& config);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  /// Closes within Config-independent bounds (two seconds); what can't be closed by then is
  /// abandoned with its memory still mapped.
  ~Engine();
  /// Tells peers, ends all transfers with `closed`, stops the threads. `quarantined` if something
  /// could not be closed in time.
  Result<void> close(Deadline deadline);

  const std::string& name() const noexcept;
  /// What peers pass to connect(); empty if the engine does not listen.
  const std::string& address() const noexcept;
  Info info() const;
  /// What the RDMA NICs below the rails have counted: one for each, in the order of their first
  /// rails; empty if there are none, or a container hides them. Reads files, for which a driver may
  /// ask its device: not for callbacks.
  std::vector<NicCounters> nic_counters() const;

  /// @name Peers
  /// @{
  /// Meets the engine at "host:port". Returns the existing peer if both have met already.
  Result<Peer> connect(std::string_view address, Deadline deadline);
  /// connect(), and again whenever the peer is gone, until disconnect(): at first after a tenth of
  /// a second, then less and less often, down to every five seconds or so. A peer that comes back
  /// is a new Peer (see peer() and Config::peer_events), and what it granted before is `stale` if
  /// it was restarted.
  Result<Peer> keep_connected(std::string_view address, Deadline deadline);
  /// The peer of that name, as soon as it is up.
  Result<Peer> peer(std::string_view name, Deadline deadline);
  /// Waits for the next peer that connected to this engine and was not returned before.
  Result<Peer> accept(Deadline deadline);
  /// All peers that are up.
  std::vector<Peer> peers() const;
  /// Says goodbye; transfers with the peer fail. What GPU memory this engine has lent it is waited
  /// for, for 2 s at most: what does not come back then is not free before its process has ended.
  Result<void> disconnect(const Peer& peer);
  /// Closes a rail (Info::rails) and opens it again, so that nothing that was posted over it by
  /// either side touches memory any more: for a NIC that neither completes nor fails what it was
  /// given, or to fence off a peer that is gone (Grant::fence). What this engine had out over it is
  /// carried out anew. What peers had, fails, and they take another rail where they have one; over
  /// some providers (tcp) a peer whose message was under way is disconnected. Returns once the
  /// peers know where the rail is now: what they begin from then on is not touched by it. (One that
  /// does not answer is waited for until the deadline, or for Config::death_after.)
  ///
  /// A GPU's memory that the rail can't register any more is staged on it from then on, until it is
  /// added, or granted, anew; explain() says why.
  ///
  /// `timed_out` if it did not come to an end by the deadline: a provider may block in closing, and
  /// the rail is out of use until that returns. Other errors: it is closed, and could not be
  /// opened; it may be tried again. `unsupported` over shared memory.
  Result<void> reopen(std::string_view rail, Deadline deadline);
  /// @}

  /// @name Memory
  /// @{
  /// May wait. A GPU's memory can't be added in callbacks.
  Result<Segment> add(const Memory& memory);
  /// Reads a grant made by a connected peer, and asks it whether the grant still holds, which may
  /// take up to Config::default_timeout: not for callbacks. `stale` if it was revoked, or that
  /// engine was restarted since.
  Result<Remote> import(Bytes blob);
  /// Makes a grant known under a name (at most 255 bytes) to every peer that asks; replaces an
  /// earlier one of that name.
  Result<void> publish(std::string_view name, const Grant& grant);
  /// Asks a peer for a grant by name, and waits until it is published there.
  Result<Remote> lookup(const Peer& peer, std::string_view name, Deadline deadline);
  /// @}

  /// @name Transfers
  /// @{
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           std::span<const Pair> pairs);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           const Strided& pieces);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           const Paged& pieces);
  /// Starts the pieces of `prepared` whose indices are in `picks`. Never blocks, unless `options`
  /// ask to wait for room.
  Result<Transfer> submit(const Prepared& prepared, std::span<const std::uint32_t> picks,
                          TransferOptions options = {});
  /// Starts all pieces of `prepared`.
  Result<Transfer> submit(const Prepared& prepared, TransferOptions options = {});
  /// prepare() and submit() in one.
  Result<Transfer> write(const Segment& local, const Remote& remote, std::span<const Pair> pairs,
                         TransferOptions options = {});
  Result<Transfer> read(const Segment& local, const Remote& remote, std::span<const Pair> pairs,
                        TransferOptions options = {});
  /// @}

  /// @name Paths
  /// @{
  /// The path that a transfer between them would take now, and whether policies allow it
  /// (Path::refused). Nothing is moved.
  Result<Path> explain(const Segment& local, const Remote& remote, Direction direction,
                       const TransferOptions& options = {}) const;
  /// The same between memory at two places, where there are no segments yet. Of the peer's machine
  /// nothing is known: all rails that lead there count.
  Result<Path> explain(const Place& local, const Peer& peer, const Place& remote,
                       Direction direction, const TransferOptions& options = {}) const;
  /// @}

  /// @name Metrics
  /// What ended transfers came to since the engine was opened, and how its rails and peers stand
  /// now. Each transfer is counted before its end is told. `unavailable` without Config::metrics.
  /// @{

  /// In Prometheus's text format, version 0.0.4. lib/metrics/README.md lists the metrics.
  Result<std::string> metrics_text() const;
  /// The same and the slowest transfers, as one JSON document.
  Result<std::string> snapshot() const;
  /// At most 16 of those that ended within one to two minutes, the slowest first.
  Result<std::vector<SlowTransfer>> slowest_transfers() const;
  /// Where Config::metrics_listen came to listen; empty if it is nowhere.
  const std::string& metrics_address() const noexcept;
  /// @}

  /// @name Signals and messages
  /// @{
  /// Raises a signal at the peer without moving data.
  Result<void> signal(const Peer& peer, const Signal& signal, Deadline deadline);
  /// Waits for `count` (at least 1) signals `id` from `peer`.
  Result<Expectation> expect(const Peer& peer, std::uint64_t id, std::uint64_t count,
                             NotifyOptions options = {});
  /// Sends a tagged message. Returns when the bytes are copied into the peer's send queue, waiting
  /// up to the deadline while that is full; messages to one peer are matched in order.
  Result<void> send(const Peer& peer, std::uint64_t tag, Bytes bytes, Deadline deadline);
  /// Asks for the next message whose tag equals `tag` in the bits set in `mask`, from `peer`.
  Result<Receive> receive(const Peer& peer, std::uint64_t tag, std::uint64_t mask,
                          NotifyOptions options = {});
  /// receive() and wait() in one.
  Result<Message> recv(const Peer& peer, std::uint64_t tag, std::uint64_t mask, Deadline deadline);
  /// @}

  /// @name Progress and events
  /// @{
  /// Manual progress: one round, without waiting. Rails with nothing to do for this engine may be
  /// left out for 20 us. Returns how many operations ended; of several threads one works, the
  /// others get 0 at once.
  ///
  /// Under Progress::threads, for a caller that does nothing but look again and again: what is
  /// small (256 KiB for the rails of a thread) it carries itself, which is quicker than to hear of
  /// it from another thread. The engine's threads rest meanwhile, and go on 0.2 ms after the last
  /// call. What is more they carry, and this does nothing. Waits do the same while they look
  /// (Config::spin).
  Result<std::size_t> progress();
  /// Takes up to `events.size()` events without waiting; returns how many.
  std::size_t poll(std::span<Event> events);
  /// Readable while events are queued (an eventfd: for poll and epoll; do not read it).
  int event_fd() const noexcept;
  /// @}

 private:
  friend Result<Engine> core::open_engine(const Config& config, const core::EngineHooks& hooks);
  explicit Engine(std::shared_ptr<core::EngineState> state);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           core::PieceList&& pieces);
  std::shared_ptr<core::EngineState> state_;
};

/// Looks for providers and NICs without opening anything: what Engine::open would take, and why.
WEFT_API Result<std::vector<Candidate>> discover(const Config& config);

/// The machine as an engine with this configuration sees it: load_topology(), with names and speeds
/// that libfabric tells of its NICs, and those that have no place in the tree among `unplaced`.
WEFT_API Result<Topology> machine_topology(const Config& config);

}  // namespace weft
