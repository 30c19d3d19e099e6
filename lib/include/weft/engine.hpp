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
#include <weft/memory.hpp>
#include <weft/message.hpp>
#include <weft/metrics.hpp>
#include <weft/nic_counters.hpp>
#include <weft/path.hpp>
#include <weft/topology.hpp>
#include <weft/transfer.hpp>

namespace weft {

class Engine;

namespace core {
class EngineState;
class PeerState;
class PieceList;
struct EngineHooks;
Result<Engine> open_engine(const Config& config, const EngineHooks& hooks);
}  // namespace core

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
  friend class core::EngineState;
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
