/// @file
/// The engine: rails, threads and peers of one process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/config.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/grant.hpp>
#include <weft/health.hpp>
#include <weft/memory.hpp>
#include <weft/message.hpp>
#include <weft/metrics.hpp>
#include <weft/nic_counters.hpp>
#include <weft/path.hpp>
#include <weft/place.hpp>
#include <weft/process.hpp>
#include <weft/remote.hpp>
#include <weft/segment.hpp>
#include <weft/topology.hpp>
#include <weft/transfer.hpp>

namespace weft {

class Engine;

namespace core {
class EngineState;
class PeerState;
class Peers;
class PieceList;
struct EngineHooks;
Result<Engine> open_engine(const Config& config, const EngineHooks& hooks);
}  // namespace core

/// Another engine, met over the control connection. Cheap to copy; stays valid when the peer is
/// gone, and a peer that comes back is a new Peer. Calls may be made from any thread. Once this
/// engine is closed, those that return a Result fail with `closed`.
class WEFT_API Peer {
 public:
  Peer(const Peer&) = default;  // moving copies too: a handle is never empty
  Peer& operator=(const Peer&) = default;

  const std::string& name() const noexcept;
  /// A number that changes each time the engine of that name is opened.
  std::uint64_t incarnation() const noexcept;
  bool up() const noexcept;
  /// Judged by the peer's last heartbeats, or by their absence.
  Health health() const noexcept;
  /// Why it is down; empty while up.
  std::optional<Error> why_down() const;
  /// Whether both engines are proven to be on one machine.
  bool same_host() const noexcept;
  /// Its control address as advertised.
  const std::string& address() const noexcept;
  /// Names of the local rails that transfers to this peer use, e.g. "shm:0".
  std::vector<std::string> rails() const;
  /// Why these rails, and why not better ones: a sentence.
  const std::string& route_reason() const noexcept;
  /// Why the peers do not use the fastest rails that either side seems to have or that one host
  /// allows, and the setting that fixes it; empty if they do. Also logged as a warning when the two
  /// engines meet.
  const std::string& fallback() const noexcept;

  /// Asks for a grant by name, and waits until it is published there.
  Result<Remote> lookup(std::string_view name, Deadline deadline) const;
  /// The path that a transfer between memory at two places would take now, without segments. The
  /// peer's machine is not known here, so all rails that lead there count.
  Result<Path> explain(const Place& local, const Place& remote, Direction direction,
                       const TransferOptions& options = {}) const;
  /// Says goodbye; transfers with the peer fail. If this engine has lent it GPU memory, the call
  /// waits up to 2 s for its return; memory that is not returned is in use until the peer's process
  /// ends.
  Result<void> disconnect() const;

  /// @name Signals and messages
  /// @{
  /// Raises a signal there without moving data.
  Result<void> signal(const Signal& signal, Deadline deadline) const;
  /// Waits for `count` (at least 1) signals `id`.
  Result<Expectation> expect(std::uint64_t id, std::uint64_t count,
                             NotifyOptions options = {}) const;
  /// Forgets a signal id: drops what has arrived of it, failures too, and what arrives until it is
  /// expected again. For ids that nobody will ask for, which would otherwise use up
  /// Config::unclaimed_bytes. An id that an expectation waits for is left as it is.
  ///
  /// The ids of a peer are kept as ranges, of which neighbours merge. Beyond 16,384 ranges the one
  /// that was not added to for the longest time is let go of: what arrives for it is kept again.
  Result<void> forget(std::uint64_t id) const;
  /// The same for all ids from `first` to `last`, both included.
  Result<void> forget(std::uint64_t first, std::uint64_t last) const;
  /// Sends a tagged message. Returns when the bytes are copied into the peer's send queue; waits
  /// up to the deadline while that is full. Messages are matched in order.
  Result<void> send(std::uint64_t tag, Bytes bytes, Deadline deadline) const;
  /// Asks for the next message whose tag equals `tag` in the bits set in `mask`.
  Result<Receive> receive(std::uint64_t tag, std::uint64_t mask, NotifyOptions options = {}) const;
  /// receive() and wait() in one.
  Result<Message> recv(std::uint64_t tag, std::uint64_t mask, Deadline deadline) const;
  /// @}

 private:
  friend class Engine;
  friend class core::Peers;
  Peer(std::shared_ptr<core::PeerState> state, std::weak_ptr<core::EngineState> engine);
  std::shared_ptr<core::PeerState> state_;
  std::weak_ptr<core::EngineState> engine_;  // that it is a peer of
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
  /// Of peer_up: the peer itself. It stays valid if the peer is gone when the event is polled, and
  /// what it sent can still be received.
  std::optional<Peer> who;
};

struct RailInfo {
  std::string name;  ///< E.g. "tcp:0".
  Capability capability;
  unsigned thread = 0;           ///< Index of the progress thread that owns it.
  std::uint64_t operations = 0;  ///< Completed since the rail was opened.
  std::uint64_t bytes = 0;       ///< Of these operations.
  std::uint64_t in_flight = 0;   ///< Operations.
  std::uint64_t lost = 0;        ///< Operations that never completed after their peer died.
  int numa_node = -1;            ///< Of its NIC; -1: unknown.
  /// @name Memory that the engine keeps for peers, in bytes
  /// Registered, and so pinned, where Capability::local_registration says so. It grows when peers
  /// use it, and shrinks some seconds after they have stopped.
  /// @{
  std::uint64_t message_buffer_bytes = 0;  ///< Of messages and signals, both directions.
  std::uint64_t bounce_buffer_bytes = 0;   ///< At most Config::bounce_memory.
  /// @}
  /// Receives: what peers may send without being asked, and how many are posted. At most
  /// Capability::receive_queue.
  std::uint64_t receives_promised = 0, receives_posted = 0;
};

struct Info {
  std::string name;
  std::uint64_t incarnation = 0;
  std::string address;
  std::vector<RailInfo> rails;
  std::vector<Candidate> candidates;
  std::vector<Setting> settings;
  /// Why the rails are slower than this machine seems to have; empty if they are not.
  std::string fallback;
  LibfabricInfo libfabric;  ///< Of the process, whether or not a rail uses it.
  std::uint64_t transfers_active = 0;
  std::uint64_t segments = 0;
};

/// Moves bytes between this process and its peers. Calls may be made from any thread unless they
/// say otherwise. In a forked child every call fails with `forked`.
class WEFT_API Engine {
 public:
  /// Opens rails and starts listening. Nothing is printed; see log.hpp.
  static Result<Engine> open(const Config& config);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  /// Closes within two seconds. What can't be closed by then is abandoned, with its memory mapped.
  ~Engine();
  /// Says goodbye to peers (their transfers whose signals came here end as done), ends all own
  /// transfers with `closed`, stops the threads. `quarantined`: something did not close in time.
  Result<void> close(Deadline deadline);

  const std::string& name() const noexcept;
  /// What peers pass to connect(); empty if the engine does not listen.
  const std::string& address() const noexcept;
  Info info() const;
  /// What the RDMA NICs of the rails have counted: one entry for each NIC, in the order of their
  /// first rails. Empty if there are none, or if a container hides them. Reads files, for which a
  /// driver may ask its device: not for callbacks.
  std::vector<NicCounters> nic_counters() const;

  /// @name Peers
  /// @{
  /// Meets the engine at "host:port". Returns the existing peer if the two have met already.
  Result<Peer> connect(std::string_view address, Deadline deadline);
  /// connect(), and again whenever the peer is gone, until Peer::disconnect(): first after a tenth
  /// of a second, then less often, down to about every five seconds. A peer that comes back is a
  /// new Peer (see peer() and Config::peer_events). If it was restarted, its earlier grants are
  /// `stale`.
  Result<Peer> keep_connected(std::string_view address, Deadline deadline);
  /// The peer of that name, as soon as it is up.
  Result<Peer> peer(std::string_view name, Deadline deadline);
  /// The next peer that connected and was not returned before. It may have said goodbye already.
  Result<Peer> accept(Deadline deadline);
  /// Readable while accept() would return at once, also after close() (an eventfd: for poll and
  /// epoll; do not read it). Other threads that accept may be faster.
  int accept_fd() const noexcept;
  /// All peers that are up.
  std::vector<Peer> peers() const;
  /// Closes a rail (Info::rails) and opens it again. Afterwards nothing that either side posted
  /// over it before touches memory. Use it for a NIC that neither completes nor fails its
  /// operations, or to fence off a peer that is gone (Grant::fence).
  ///
  /// This engine's operations on the rail are carried out again. Those of peers fail; peers use
  /// another rail where they have one. Over some providers (tcp) a peer whose message was under way
  /// is disconnected. Returns once the peers know the rail's new address: transfers that they begin
  /// from then on are not affected. A peer that does not answer is waited for until the deadline,
  /// at most for Config::death_after.
  ///
  /// GPU memory that the rail can't register again is staged on it, until it is added or granted
  /// anew; explain() says why.
  ///
  /// Fails with `timed_out` if it did not finish by the deadline: a provider may block in closing,
  /// and the rail is out of use until that returns. Fails with another error if the rail is closed
  /// and could not be opened; it may be tried again. `unsupported` over shared memory.
  Result<void> reopen(std::string_view rail, Deadline deadline);
  /// @}

  /// @name Memory
  /// @{
  /// Registers memory with the rails that serve it. May wait. GPU memory can't be added in
  /// callbacks.
  Result<Segment> add(const Memory& memory);
  /// Reads a grant of a connected peer, and asks the peer whether the grant still holds. That takes
  /// until the deadline at most; without one, Config::default_timeout. Not for callbacks.
  /// Fails with `stale` if the grant was revoked, or if that engine was restarted since.
  Result<Remote> import(Bytes blob, std::optional<Deadline> deadline = {});
  /// add(), grant() of all of it, and publish(): for as long as the segment is not released.
  Result<Segment> share(const Memory& memory, std::string_view name, Rights rights);
  /// connect() and Peer::lookup(): the grant that the engine at "host:port" has published.
  Result<Remote> fetch(std::string_view address, std::string_view name, Deadline deadline);
  /// Makes a grant known to every peer under a name of at most 255 bytes. Replaces an earlier grant
  /// of that name.
  Result<void> publish(std::string_view name, const Grant& grant);
  /// @}

  /// @name Transfers
  /// @{
  /// Checks a list of pieces once; the result may be submitted any number of times.
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           std::span<const Pair> pairs);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           const Strided& pieces);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           const Paged& pieces);
  /// Starts the pieces of `prepared` whose indices are in `picks`. Does not block, unless `options`
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
  /// Connects ahead of the first transfer: each NIC that would carry it sends a request to every
  /// peer NIC it is paired with, and waits for the reply. Otherwise providers connect and allocate
  /// on first use. A transfer of no bytes: it ends as others do, and its signal comes after the
  /// replies. A NIC that gets none is set aside; the transfer fails only if no NIC gets one.
  Result<Transfer> warm(const Segment& local, const Remote& remote, TransferOptions options = {});
  /// @}

  /// @name Paths
  /// @{
  /// The path that a transfer between the two would take now, and whether policies allow it
  /// (Path::refused). Moves nothing.
  Result<Path> explain(const Segment& local, const Remote& remote, Direction direction,
                       const TransferOptions& options = {}) const;
  /// @}

  /// @name Metrics
  /// Totals of the transfers that ended and of what peers did since the engine was opened, and the
  /// present state of rails, grants and peers. A transfer is counted before its end is reported, a
  /// signal or a message before it is handed on. `unavailable` without Config::metrics.
  /// @{

  /// In Prometheus's text format, version 0.0.4. lib/core/metrics/README.md lists them.
  Result<std::string> metrics_text() const;
  /// The same and the slowest transfers, as one JSON document.
  Result<std::string> snapshot() const;
  /// At most 16 transfers of the last one to two minutes, the slowest first.
  Result<std::vector<SlowTransfer>> slowest_transfers() const;
  /// The address that Config::metrics_listen led to; empty if there is none.
  const std::string& metrics_address() const noexcept;
  /// @}

  /// @name Progress and events
  /// @{
  /// Progress::manual: makes one round of progress without waiting. Returns how many operations
  /// ended. If several threads call it, one works and the others get 0 at once.
  /// Progress::threads: the same for the rails of the first thread, which leaves them to a caller
  /// that polls, and goes on a millisecond after its last call. Callbacks run inside it.
  Result<std::size_t> progress();
  /// Takes up to `events.size()` events without waiting. Returns how many it took.
  std::size_t poll(std::span<Event> events);
  /// Readable while events are queued (an eventfd: for poll and epoll; do not read it).
  int event_fd() const noexcept;
  /// @}

 private:
  friend Result<Engine> core::open_engine(const Config& config, const core::EngineHooks& hooks);
  explicit Engine(std::shared_ptr<core::EngineState> state);
  Result<Prepared> prepare(const Segment& local, const Remote& remote, Direction direction,
                           core::PieceList&& pieces);
  Result<Transfer> start(const Segment& local, const Remote& remote, Direction direction,
                         std::span<const Pair> pairs, TransferOptions&& options);
  std::shared_ptr<core::EngineState> state_;
};

/// Looks for providers and NICs without opening anything: which Engine::open would use, and why.
WEFT_API Result<std::vector<Candidate>> discover(const Config& config);

/// The machine as an engine with this configuration sees it: load_topology(), with the names and
/// speeds of NICs from libfabric. NICs that have no place in the tree are among `unplaced`.
WEFT_API Result<Topology> machine_topology(const Config& config);

}  // namespace weft
