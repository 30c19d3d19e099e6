#include "providers/libfabric/fabric_endpoint.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/random.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/sync.hpp"
#include "providers/libfabric/capability_record.hpp"
#include "providers/libfabric/doorbell.hpp"
#include "providers/libfabric/edges.hpp"
#include "providers/libfabric/endpoint_gate.hpp"
#include "providers/libfabric/inner_epoll.hpp"
#include "providers/libfabric/operation_names.hpp"
#include "providers/libfabric/registration_request.hpp"
#include "providers/libfabric/shared_endpoints.hpp"
#include "providers/libfabric/signal_handlers.hpp"
#include "providers/libfabric/under_way.hpp"
#include "providers/sanitizer.hpp"

namespace weft::providers {
namespace {

static_assert(sizeof(Posted::fabric_context) >= sizeof(fi_context2));
static_assert(sizeof(FabricAddress) == sizeof(fi_addr_t));
static_assert(unknown_peer == FI_ADDR_UNSPEC);

// An event queue is for failures that no operation can be blamed for: one look in so many polls.
constexpr unsigned polls_per_event_look = 256;
// A poll takes in one message of each connection, of 4500 bytes at least if there are more behind
// it (prov/net, xnet_progress_rx), and tells nothing of those that end elsewhere. So many polls
// take in as much as a socket's buffer holds (tcp_rmem: 6 MiB at most, by default).
constexpr unsigned polls_to_take_all_in = 2048;

/// With FI_DELIVERY_COMPLETE a completion says that the bytes are visible at the target, and a
/// refused operation is an error; without it tcp and shm report both as success (libfabric 1.17 and
/// 2.x, measured). Where NICs move the bytes it promises nothing.
std::uint64_t completion_flags(CompletionProof proof) {
  return FI_COMPLETION | (proof == CompletionProof::visible ? FI_DELIVERY_COMPLETE : 0);
}

std::uint64_t fabric_access(Access access) {
  switch (access) {
    case Access::local:
      return FI_READ | FI_WRITE;
    case Access::source:
      return FI_WRITE;
    case Access::remote_read:
      return FI_REMOTE_READ;
    case Access::remote_write:
      return FI_REMOTE_WRITE;
    case Access::remote_read_write:
      return FI_REMOTE_READ | FI_REMOTE_WRITE;
    case Access::messages:
      return FI_SEND | FI_RECV;
  }
  return 0;
}

std::string as_text(Bytes address) {
  return std::string(reinterpret_cast<const char*>(address.data()), address.size());
}

Post as_post(ssize_t result) {
  if (result == 0) return {};
  if (result == -FI_EAGAIN) return {PostStatus::again, 0};
  return {PostStatus::failed, static_cast<int>(-result)};
}

/// Only while the endpoint is open.
void* descriptor_of(const Local& local) {
  return local.registration != nullptr ? local.registration->descriptor() : nullptr;
}

Posted* posted_from(void* context) {
  static_assert(offsetof(Posted, fabric_context) == 0);
  return static_cast<Posted*>(context);
}

/// Providers that keep notes in an operation's context need its memory there, not a name.
bool contexts_are_opaque(const fi_info& info) {
  return (info.mode & (FI_CONTEXT | FI_CONTEXT2)) == 0;
}

/// Order matters: closed from the last to the first.
struct OpenHandles {
  FidPtr<fid_fabric> fabric;
  FidPtr<fid_domain> domain;
  FidPtr<fid_eq> events;
  FidPtr<fid_cq> queue;
  FidPtr<fid_av> addresses;
  FidPtr<fid_ep> endpoint;
  // Where messages have no tags their classes have endpoints: this one is the bounce-buffer
  // transport's. It has an address vector of its own, because efa binds one endpoint to each.
  FidPtr<fid_av> bounce_addresses;
  FidPtr<fid_ep> bounce_endpoint;
};

/// Registered memory, and how it is registered.
struct Region {
  Extent memory;
  Access access = Access::local;
  // Another one when it is registered again, if the provider chooses.
  std::atomic<std::uint64_t> key{0};
  FidPtr<fid_mr> registered = nullptr;
  std::atomic<bool> retired{false};
  std::atomic<bool> lost{false};
  std::optional<Error> why_lost = {};  // once `lost`
};

class FabricEndpoint final : public Endpoint {
 public:
  ~FabricEndpoint() override {
    if (shared_) shared_->leave_behind(std::make_shared<OpenHandles>(std::move(handles_)));
  }
  Result<void> open(const Spec& spec, const Way& way, const fi_info& nic, bool device_memory);

  const Capability& capability() const noexcept override { return record_; }
  const Blob& address() const noexcept override { return address_; }

  Result<FabricAddress> insert(Bytes address) override;
  void remove(FabricAddress peer) override;
  Result<std::unique_ptr<Registration>> register_memory(const Extent& memory,
                                                        Access access) override;

  Post write(Posted& posted, const Local& local, const Target& target) override {
    return write_list(posted, std::array{RmaPiece{local, target}});
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    return read_list(posted, std::array{RmaPiece{local, target}});
  }
  Post write_list(Posted& posted, std::span<const RmaPiece> pieces) override {
    return rma(fi_writemsg, posted, pieces);
  }
  Post read_list(Posted& posted, std::span<const RmaPiece> pieces) override {
    return rma(fi_readmsg, posted, pieces);
  }
  BatchPost post_all(bool writes, std::span<const RmaPost> posts) override;
  Post send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) override;
  Post receive(Posted& posted, const Local& local, MessageClass type) override;
  bool take_back(Posted& posted, MessageClass type) override;
  std::size_t poll() override;
  void take_in_arrivals(Deadline deadline) override;
  int wait_fd() const noexcept override {
    if (state_ != State::open) return -1;
    return edges_ ? edges_->fd() : wait_fd_;
  }
  bool may_sleep() override {
    if (state_ != State::open) return true;
    if (!queue_lets_sleep()) return false;
    if (!edges_) return true;
    if (edges_->forget()) polls_since_edge_ = 0;
    return poll() == 0 && polls_since_edge_ >= polls_to_take_all_in;
  }

  void shut() override {
    if (shared_) return;
    handles_.bounce_endpoint.reset();
    handles_.endpoint.reset();
  }
  // Over shared memory others of this process look into it.
  bool reopens() const noexcept override { return shared_ == nullptr; }
  void suspend() override;
  Result<void> reopen() override;
  void resume() override;

  EndpointGate& gate() noexcept { return gate_; }
  void forget(const Region& region);

  /// Whether this is a forked child's copy of an endpoint, whose objects are the parent's.
  bool inherited() const { return core::fork_generation() != generation_; }

  /// Held around calls that the provider does not guard against each other itself.
  std::unique_lock<core::Mutex> guard() {
    return serialise_ ? std::unique_lock(mutex_) : std::unique_lock<core::Mutex>();
  }

 private:
  /// The provider's context for an operation; null if the operation is over.
  void* name(Posted& posted) {
    if (!names_) return posted.fabric_context;
    void* const given = names_->give(posted);
    std::memcpy(posted.fabric_context, &given, sizeof given);  // libfabric does not use it then
    return given;
  }
  /// What name() returned last.
  void* last_name(Posted& posted) const {
    if (!names_) return posted.fabric_context;
    void* given = nullptr;
    std::memcpy(&given, posted.fabric_context, sizeof given);
    return given;
  }
  Posted* named(void* context) {
    return names_ ? names_->take_back(context) : posted_from(context);
  }
  enum class Queue { send, receive };
  /// The result of a call that was to post the operation of that name.
  Post posted_as(Posted& posted, void* name, Queue queue, ssize_t result);
  /// Why nothing can be posted while it is not open.
  Post refusal() const {
    if (state_ == State::suspended) return {PostStatus::again, 0};
    return {PostStatus::failed, FI_ENODEV};
  }
  using RmaCall = ssize_t (*)(fid_ep*, const fi_msg_rma*, std::uint64_t);
  Post rma(RmaCall call, Posted& posted, std::span<const RmaPiece> pieces,
           bool leave_doorbell = false);
  std::size_t room() const;
  Post send_untagged(Posted& posted, const iovec& vector, void* descriptor, FabricAddress peer,
                     MessageClass type);
  Result<void> open_handles();
  Result<void> close_endpoints();
  void close_handles();
  int open_region(Region& region);
  Result<void> open_regions();
  Result<void> open_events();
  Result<void> open_queue();
  void do_without_signal();
  bool queue_lets_sleep() {
    const auto lock = guard();
    fid* waited[] = {&handles_.queue->fid};
    return fi_trywait(handles_.fabric.get(), waited, 1) == FI_SUCCESS;
  }
  Result<void> open_addresses(FidPtr<fid_av>& addresses);
  Result<void> enable(FidPtr<fid_ep>& endpoint, fid_av& addresses);
  Result<void> open_bounce_endpoint();
  Result<void> read_address(fid_ep& endpoint);
  Result<void> check_form(Bytes address) const;
  static Result<fi_addr_t> insert_one(fid_av& addresses, Bytes address);
  static void remove_one(fid_av& addresses, fi_addr_t peer) {
    fi_av_remove(&addresses, &peer, 1, 0);
  }
  bool has_bounce_endpoint() const { return handles_.bounce_endpoint != nullptr; }
  fi_addr_t bounce_of(FabricAddress peer);
  void look_at_events();
  Result<void> check_keys();
  ssize_t read_queue(std::span<fi_cq_msg_entry> entries);
  std::size_t report_errors();

  const Spec* spec_ = nullptr;
  Way way_;
  InfoPtr info_;
  OpenHandles handles_;
  enum class State { open, suspended, closed } state_ = State::open;  // the owning thread's
  bool was_closed_ = false;  // reopen() did so, and resume() has not told yet
  UnderWay under_way_;
  EndpointGate gate_;
  core::Mutex regions_mutex_;
  // Not forgotten.
  std::unordered_map<const Region*, std::shared_ptr<Region>> regions_
      WEFT_GUARDED_BY(regions_mutex_);
  std::optional<OperationNames> names_;     // where an end may be reported more than once
  std::unique_ptr<SharedEndpoint> shared_;  // where endpoints of one process share memory
  Capability record_;
  Blob address_;
  std::uint64_t completion_flags_ = 0;
  unsigned polls_ = 0;
  int wait_fd_ = -1;
  std::optional<Edges> edges_;  // of wait_fd_, where that stays readable; see do_without_signal()
  std::uint64_t polls_since_edge_ = 0;
  bool serialise_ = false;
  const std::uint64_t generation_ = core::fork_generation();
  core::Mutex mutex_;
  // Providers differ in whether they count how often an address was inserted.
  struct Inserted {
    std::size_t users = 0;
    std::string name;
    fi_addr_t bounce =
        FI_ADDR_UNSPEC;  // the peer's bounce-buffer transport endpoint, where it has one
  };
  std::map<fi_addr_t, Inserted> inserted_;
  core::Mutex inserting_;       // held for as long as the provider takes to insert or remove
  core::Mutex inserted_mutex_;  // held for a look at the map, by the posting thread too
};

class FabricRegistration final : public Registration {
 public:
  FabricRegistration(FabricEndpoint& endpoint, std::shared_ptr<Region> region)
      : endpoint_(endpoint), region_(std::move(region)) {}
  ~FabricRegistration() override {
    if (!FabricRegistration::close()) endpoint_.forget(*region_);
  }
  void* descriptor() const noexcept override { return fi_mr_desc(region_->registered.get()); }
  std::uint64_t key() const noexcept override { return region_->key; }
  bool close() override;
  void retire() noexcept override { region_->retired = true; }
  const Error* lost() const noexcept override {
    return region_->lost ? &*region_->why_lost : nullptr;
  }

 private:
  FabricEndpoint& endpoint_;
  const std::shared_ptr<Region> region_;
};

bool FabricRegistration::close() {
  retire();
  const EndpointGate::Pass pass(endpoint_.gate());
  if (!pass) return false;
  if (!region_->registered) {
    endpoint_.forget(*region_);
    return true;
  }
  // A NIC's registration belongs to the kernel's device, and closing it here would close it there.
  if (endpoint_.inherited()) {
    static_cast<void>(region_->registered.release());
    return false;
  }
  {
    const auto lock = endpoint_.guard();
    if (fi_close(&region_->registered->fid) != 0) return false;
    static_cast<void>(region_->registered.release());
  }
  endpoint_.forget(*region_);
  return true;
}

Error cant_register(std::size_t length, int result) {
  const Error error = fabric_error("fi_mr_regattr", result);
  return Error(error.code(), fmt::format("can't register {} bytes: {}", length, error.message()))
      .with_operation("fi_mr_regattr")
      .with_fabric_code(error.fabric_code());
}

Error not_open() {
  return Error(Code::unavailable, "the rail is being closed and opened again");
}

template <typename Object, typename Open>
Result<void> open_object(FidPtr<Object>& into, std::string_view operation, Open&& open) {
  Object* made = nullptr;
  if (const int result = open(&made); result != 0) return fail(fabric_error(operation, result));
  into.reset(made);
  return {};
}

Result<void> FabricEndpoint::open(const Spec& spec, const Way& way, const fi_info& nic,
                                  bool device_memory) {
  spec_ = &spec;
  way_ = way;
  info_ = copy_of(&nic);
  if (!info_) return fail(Code::out_of_memory, "no memory for libfabric's description of a NIC");
  serialise_ = spec.serialise;
  if (spec.repeats_ends && contexts_are_opaque(nic)) names_.emplace();
  if (spec.source_name != nullptr) {
    const std::string name = spec.source_name();
    free(info_->src_addr);
    info_->src_addr = strdup(name.c_str());
    info_->src_addrlen = name.size() + 1;
  }
  record_ = make_record(spec, *info_);
  if (device_memory && spec.device_memory && !record_.device_memory)
    record_.device_memory_problem =
        fmt::format("libfabric {} offers no access to device memory by it (FI_HMEM)",
                    libfabric().version_text());
  return open_handles().and_then([&] { return check_keys(); }).map([&] {
    if (spec.examine != nullptr) spec.examine(*handles_.endpoint, record_);
    completion_flags_ = completion_flags(record_.proof);
    if (spec.shared_in_process) shared_ = std::make_unique<SharedEndpoint>(as_text(address_));
    // When it is first polled, efa makes its pools of packets (1.17, prov/efa/src/rxr/rxr_ep.c:
    // rxr_ep_grow_rx_pkt_pools), 100 MB for each NIC. Not while a peer waits for a heartbeat.
    poll();
  });
}

Result<void> FabricEndpoint::open_handles() {
  return open_object(
             handles_.fabric, "fi_fabric",
             [&](auto** out) { return libfabric().fabric(info_->fabric_attr, out, nullptr); })
      .and_then([&] {
        return open_object(handles_.domain, "fi_domain", [&](auto** out) {
          return fi_domain(handles_.fabric.get(), info_.get(), out, nullptr);
        });
      })
      .and_then([&] { return spec_->event_queue ? open_events() : Result<void>(); })
      .and_then([&] { return open_queue(); })
      .and_then([&] { return open_addresses(handles_.addresses); })
      .and_then([&] { return enable(handles_.endpoint, *handles_.addresses); })
      .and_then([&] { return way_.tagged ? Result<void>() : open_bounce_endpoint(); });
}

/// Takes in received bytes that were not read: they would be lost, though their sender was told
/// that they arrived.
void FabricEndpoint::suspend() {
  constexpr int most_looks = 1024;
  for (int look = 0; look < most_looks && poll() > 0; ++look) {
  }
  state_ = State::suspended;
}

/// Endpoints before what is registered: a NIC may be at it until then.
Result<void> FabricEndpoint::close_endpoints() {
  for (auto* endpoint : {&handles_.bounce_endpoint, &handles_.endpoint}) {
    if (!*endpoint) continue;
    if (const int result = fi_close(&(*endpoint)->fid); result != 0)
      return fail(Error(Code::quarantined, "the endpoint can't be closed: " + fabric_text(-result))
                      .with_operation("fi_close")
                      .with_fabric_code(-result));
    static_cast<void>(endpoint->release());
  }
  return {};
}

void FabricEndpoint::close_handles() {
  handles_.bounce_endpoint.reset();
  handles_.endpoint.reset();
  const core::Lock lock(regions_mutex_);
  for (const auto& [key, region] : regions_) region->registered.reset();
  std::erase_if(regions_, [](const auto& each) { return each.second->retired.load(); });
  const OpenHandles closed = std::move(handles_);
}

Result<void> FabricEndpoint::reopen() {
  gate_.shut();
  if (auto closed = close_endpoints(); !closed) {
    gate_.open();
    return closed;
  }
  close_handles();
  address_.clear();
  {
    const core::Lock map(inserted_mutex_);
    inserted_.clear();
  }
  if (names_) names_.emplace();
  edges_.reset();
  wait_fd_ = -1;
  was_closed_ = true;
  auto opened = open_handles().and_then([&] { return open_regions(); });
  if (!opened) close_handles();
  gate_.open();
  return opened;
}

void FabricEndpoint::resume() {
  const bool was_closed = std::exchange(was_closed_, false);
  state_ = handles_.endpoint ? State::open : State::closed;
  if (!was_closed) return;
  Completion cut;
  cut.ok = false;
  cut.cut = true;
  cut.fabric_code = FI_ECANCELED;
  cut.text = "the rail was closed and opened again";
  under_way_.end_all(cut);
}

Result<void> FabricEndpoint::open_events() {
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_NONE;
  return open_object(handles_.events, "fi_eq_open", [&](auto** out) {
    return fi_eq_open(handles_.fabric.get(), &attributes, out, nullptr);
  });
}

Result<void> FabricEndpoint::open_addresses(FidPtr<fid_av>& addresses) {
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  return open_object(addresses, "fi_av_open", [&](auto** out) {
    return fi_av_open(handles_.domain.get(), &attributes, out, nullptr);
  });
}

Result<void> FabricEndpoint::open_bounce_endpoint() {
  return open_addresses(handles_.bounce_addresses).and_then([&] {
    return enable(handles_.bounce_endpoint, *handles_.bounce_addresses);
  });
}

/// Of what the descriptor waits for only the signal, which completions set and nothing takes back,
/// stays readable: the other one is the sockets'.
void FabricEndpoint::do_without_signal() {
  if (const auto sockets = inner_epoll(wait_fd_))
    wait_fd_ = *sockets;
  else
    edges_.emplace(wait_fd_);
}

Result<void> FabricEndpoint::open_queue() {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  // efa-direct's is the device's own, which loses what it has no room for, and by itself has 1024
  // entries (libfabric 2.1) for a send queue of 4096. Room for what both endpoints may send, and
  // for as many receives.
  if (!way_.tagged) attributes.size = 4 * info_->tx_attr->size;
  const auto open = [&](auto** out) {
    return fi_cq_open(handles_.domain.get(), &attributes, out, nullptr);
  };
  if (open_object(handles_.queue, "fi_cq_open", open)) {
    if (fi_control(&handles_.queue->fid, FI_GETWAIT, &wait_fd_) == 0) {
      if (way_.stays_readable) do_without_signal();
      return {};
    }
    handles_.queue.reset();
  }
  attributes.wait_obj = FI_WAIT_NONE;
  return open_object(handles_.queue, "fi_cq_open", open);
}

/// Opens and enables an endpoint, and adds its address to those that peers need.
Result<void> FabricEndpoint::enable(FidPtr<fid_ep>& endpoint, fid_av& addresses) {
  const SignalHandlersKept kept;
  auto made = open_object(endpoint, "fi_endpoint", [&](auto** out) {
    return fi_endpoint(handles_.domain.get(), info_.get(), out, nullptr);
  });
  if (!made) return made;
  struct Binding {
    fid* object;
    std::uint64_t flags;
  };
  const Binding bindings[] = {
      {&handles_.queue->fid, FI_TRANSMIT | FI_RECV},
      {&addresses.fid, 0},
      {handles_.events ? &handles_.events->fid : nullptr, 0},
  };
  for (const auto& [object, flags] : bindings) {
    if (object == nullptr) continue;
    if (const int result = fi_ep_bind(endpoint.get(), object, flags); result != 0)
      return fail(fabric_error("fi_ep_bind", result));
  }
  if (spec_->configure != nullptr)
    if (auto configured = spec_->configure(*endpoint); !configured) return configured;
  if (const int result = fi_enable(endpoint.get()); result != 0)
    return fail(fabric_error("fi_enable", result));
  return read_address(*endpoint);
}

Result<void> FabricEndpoint::read_address(fid_ep& endpoint) {
  std::size_t length = 0;
  fi_getname(&endpoint.fid, nullptr, &length);
  Blob address(length);
  if (const int result = fi_getname(&endpoint.fid, address.data(), &length); result != 0)
    return fail(fabric_error("fi_getname", result));
  address_.insert(address_.end(), address.begin(),
                  address.begin() + static_cast<std::ptrdiff_t>(length));
  return {};
}

/// Where the provider chooses the keys, libfabric may hand out registrations from a cache, which
/// have all rights and stay open when they are closed (environment.cpp keeps it off, but the
/// process may have used libfabric before). Then a grant could be neither limited nor ended.
Result<void> FabricEndpoint::check_keys() {
  if (record_.application_keys) return {};
  std::vector<std::byte> place(4096);
  auto one = register_memory({place.data(), place.size()}, Access::remote_read);
  if (!one) return fail(std::move(one.error()));
  auto other = register_memory({place.data(), place.size()}, Access::remote_write);
  if (!other) return fail(std::move(other.error()));
  if ((*one)->key() != (*other)->key()) return {};
  return fail(Code::unavailable,
              "libfabric caches memory registrations in this process, so access that was granted "
              "could not be taken back: set FI_MR_CACHE_MONITOR=disabled before libfabric is used");
}

Result<fi_addr_t> FabricEndpoint::insert_one(fid_av& addresses, Bytes address) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int inserted = fi_av_insert(&addresses, address.data(), 1, &peer, 0, nullptr);
  if (inserted != 1)
    return fail(fabric_error("fi_av_insert", inserted < 0 ? inserted : -FI_EINVAL));
  return peer;
}

/// libfabric reads as much as an address of its kind has.
Result<void> FabricEndpoint::check_form(Bytes address) const {
  if (info_->addr_format == FI_ADDR_STR) {
    if (!address.empty() && address.back() == std::byte{0}) return {};
    return fail(Code::protocol_mismatch, "the peer's address does not end");
  }
  if (address.size() == address_.size()) return {};
  return fail(Code::protocol_mismatch, fmt::format("the peer's address has {} bytes and not {}",
                                                   address.size(), address_.size()));
}

Result<FabricAddress> FabricEndpoint::insert(Bytes address) {
  const EndpointGate::Pass pass(gate_);
  if (!pass || !handles_.endpoint) return fail(not_open());
  if (auto fit = check_form(address); !fit) return fail(std::move(fit.error()));
  if (spec_->check_peer != nullptr)
    if (auto fit = spec_->check_peer(as_text(address)); !fit) return fail(std::move(fit.error()));
  const core::Lock inserting(inserting_);
  const auto lock = guard();
  const std::size_t one = has_bounce_endpoint() ? address.size() / 2 : address.size();
  auto peer = insert_one(*handles_.addresses, address.first(one));
  if (!peer) return fail(std::move(peer.error()));
  fi_addr_t bounce = FI_ADDR_UNSPEC;
  if (has_bounce_endpoint()) {
    auto second = insert_one(*handles_.bounce_addresses, address.subspan(one));
    if (!second) {
      if (!inserted_.contains(*peer)) remove_one(*handles_.addresses, *peer);
      return fail(std::move(second.error()));
    }
    bounce = *second;
  }
  const core::Lock map(inserted_mutex_);
  Inserted& inserted = inserted_[*peer];
  ++inserted.users;
  inserted.name = as_text(address);
  inserted.bounce = bounce;
  if (shared_) shared_->knows(inserted.name);
  return *peer;
}

void FabricEndpoint::remove(FabricAddress peer) {
  const EndpointGate::Pass pass(gate_);
  if (!pass) return;
  const core::Lock inserting(inserting_);
  const auto lock = guard();
  const auto entry = inserted_.find(peer);
  if (entry == inserted_.end() || --entry->second.users > 0) return;
  remove_one(*handles_.addresses, peer);
  if (has_bounce_endpoint()) remove_one(*handles_.bounce_addresses, entry->second.bounce);
  if (shared_) shared_->forgets(entry->second.name);
  const core::Lock map(inserted_mutex_);
  inserted_.erase(entry);
}

fi_addr_t FabricEndpoint::bounce_of(FabricAddress peer) {
  const core::Lock map(inserted_mutex_);
  const auto entry = inserted_.find(peer);
  return entry != inserted_.end() ? entry->second.bounce : FI_ADDR_UNSPEC;
}

Result<std::unique_ptr<Registration>> FabricEndpoint::register_memory(const Extent& memory,
                                                                      Access access) {
  const EndpointGate::Pass pass(gate_);
  if (!pass) return fail(not_open());
  const auto region = std::make_shared<Region>();
  region->memory = memory;
  region->access = access;
  // Where the engine chooses the keys they can't be guessed; a clash is drawn again.
  constexpr int draws = 16;
  int result = -FI_ENOKEY;
  for (int draw = 0; draw < draws && result == -FI_ENOKEY; ++draw) {
    std::uint64_t key = 0;
    if (record_.application_keys && getrandom(&key, sizeof key, 0) != sizeof key)
      return fail(Code::internal, "the kernel gave no random key");
    if (info_->domain_attr->mr_key_size < sizeof key)
      key &= (std::uint64_t{1} << (8 * info_->domain_attr->mr_key_size)) - 1;
    region->key = key;
    result = open_region(*region);
  }
  if (result != 0) return fail(cant_register(memory.length, result));
  const core::Lock lock(regions_mutex_);
  regions_.emplace(region.get(), region);
  return std::make_unique<FabricRegistration>(*this, region);
}

int FabricEndpoint::open_region(Region& region) {
  if (!handles_.domain) return -FI_ENODEV;
  const auto lock = guard();
  fid_mr* made = nullptr;
  const auto current = region.memory.make_current();
  const RegistrationRequest request(region.memory, fabric_access(region.access), region.key);
  const int result =
      fi_mr_regattr(handles_.domain.get(), &request.attributes(), request.flags(), &made);
  if (result != 0) return result;
  region.registered.reset(made);
  region.key = fi_mr_key(made);
  return 0;
}

/// Those that were registered with it before it was closed. Without a device's memory the rail
/// still serves: such memory is staged.
Result<void> FabricEndpoint::open_regions() {
  const core::Lock lock(regions_mutex_);
  for (const auto& [key, region] : regions_) {
    if (region->retired) continue;
    const int result = open_region(*region);
    if (result == 0) continue;
    Error error = cant_register(region->memory.length, result);
    if (region->memory.hmem == Hmem::none) return fail(std::move(error));
    region->retired = true;
    region->why_lost = std::move(error);
    region->lost = true;
  }
  return {};
}

void FabricEndpoint::forget(const Region& region) {
  const core::Lock lock(regions_mutex_);
  regions_.erase(&region);
}

Post FabricEndpoint::posted_as(Posted& posted, void* name, Queue queue, ssize_t result) {
  if (result == 0)
    under_way_.add(posted, queue == Queue::send);
  else if (names_)
    names_->take_back(name);
  return as_post(result);
}

/// How many more the send queue takes for certain. A bounce-buffer transport endpoint has a queue
/// of its own, but what it sends is counted too.
std::size_t FabricEndpoint::room() const {
  const std::size_t size = info_->tx_attr->size;
  return size - std::min(size, under_way_.sending());
}

BatchPost FabricEndpoint::post_all(bool writes, std::span<const RmaPost> posts) {
  const RmaCall call = writes ? fi_writemsg : fi_readmsg;
  return post_with_one_ring(posts, record_.shared_doorbell ? room() : 0,
                            [&](const RmaPost& each, bool leave_doorbell) {
                              return rma(call, *each.posted, {&each.piece, 1}, leave_doorbell);
                            });
}

Post FabricEndpoint::rma(RmaCall call, Posted& posted, std::span<const RmaPiece> pieces,
                         bool leave_doorbell) {
  if (state_ != State::open) return refusal();
  if (!pieces.front().target.known()) return {PostStatus::failed, FI_EHOSTUNREACH};
  std::array<iovec, most_rma_pieces> vectors;
  std::array<void*, most_rma_pieces> descriptors;
  std::array<fi_rma_iov, most_rma_pieces> remotes;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& [local, target] = pieces[i];
    vectors[i] = {local.address, local.length};
    descriptors[i] = descriptor_of(local);
    remotes[i] = {target.address, local.length, target.key};
  }
  fi_msg_rma message{};
  message.msg_iov = vectors.data();
  message.desc = descriptors.data();
  message.iov_count = message.rma_iov_count = pieces.size();
  message.addr = pieces.front().target.peer;
  message.rma_iov = remotes.data();
  message.context = name(posted);
  handing_over(&every_endpoint);
  const auto lock = guard();
  const std::uint64_t flags = completion_flags_ | (leave_doorbell ? FI_MORE : 0);
  return posted_as(posted, message.context, Queue::send,
                   call(handles_.endpoint.get(), &message, flags));
}

Post FabricEndpoint::send(Posted& posted, const Local& local, FabricAddress peer,
                          MessageClass type) {
  if (state_ != State::open) return refusal();
  if (peer == FI_ADDR_UNSPEC) return {PostStatus::failed, FI_EHOSTUNREACH};
  iovec vector{local.address, local.length};
  void* descriptor = descriptor_of(local);
  handing_over(&every_endpoint);
  const auto lock = guard();
  if (has_bounce_endpoint()) return send_untagged(posted, vector, descriptor, peer, type);
  fi_msg_tagged message{};
  message.msg_iov = &vector;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = peer;
  message.tag = static_cast<std::uint64_t>(type);
  message.context = name(posted);
  return posted_as(posted, message.context, Queue::send,
                   fi_tsendmsg(handles_.endpoint.get(), &message, completion_flags_));
}

/// The endpoint determines the class.
Post FabricEndpoint::send_untagged(Posted& posted, const iovec& vector, void* descriptor,
                                   FabricAddress peer, MessageClass type) {
  fi_msg message{};
  message.msg_iov = &vector;
  message.desc = &descriptor;
  message.iov_count = 1;
  const bool bounce = type == MessageClass::bounce;
  message.addr = bounce ? bounce_of(peer) : peer;
  if (message.addr == FI_ADDR_UNSPEC) return {PostStatus::failed, FI_EHOSTUNREACH};
  message.context = name(posted);
  fid_ep* endpoint = (bounce ? handles_.bounce_endpoint : handles_.endpoint).get();
  return posted_as(posted, message.context, Queue::send,
                   fi_sendmsg(endpoint, &message, completion_flags_));
}

Post FabricEndpoint::receive(Posted& posted, const Local& local, MessageClass type) {
  // One that could not be opened again may be yet: receives wait for that.
  if (state_ != State::open) return {PostStatus::again, 0};
  void* context = name(posted);
  const auto lock = guard();
  if (has_bounce_endpoint()) {
    const bool bounce = type == MessageClass::bounce;
    fid_ep* endpoint = (bounce ? handles_.bounce_endpoint : handles_.endpoint).get();
    return posted_as(posted, context, Queue::receive,
                     fi_recv(endpoint, local.address, local.length, descriptor_of(local),
                             FI_ADDR_UNSPEC, context));
  }
  return posted_as(
      posted, context, Queue::receive,
      fi_trecv(handles_.endpoint.get(), local.address, local.length, descriptor_of(local),
               FI_ADDR_UNSPEC, static_cast<std::uint64_t>(type), 0, context));
}

bool FabricEndpoint::take_back(Posted& posted, MessageClass type) {
  if (state_ != State::open) return false;
  const auto lock = guard();
  const bool bounce = has_bounce_endpoint() && type == MessageClass::bounce;
  // Nothing tells whether there was one to cancel: where there was, it ends with FI_ECANCELED.
  fi_cancel(&(bounce ? handles_.bounce_endpoint : handles_.endpoint)->fid, last_name(posted));
  return false;
}

ssize_t FabricEndpoint::read_queue(std::span<fi_cq_msg_entry> entries) {
  const auto lock = guard();
  return fi_cq_read(handles_.queue.get(), entries.data(), entries.size());
}

/// Errors that belong to no operation, for example a peer's failed handshake: operations that
/// waited for it never complete, and end by their deadlines.
void FabricEndpoint::look_at_events() {
  fi_eq_err_entry entry{};
  {
    const auto lock = guard();
    if (fi_eq_readerr(handles_.events.get(), &entry, 0) <= 0) return;
  }
  char buffer[128] = "";
  const char* text = fi_eq_strerror(handles_.events.get(), entry.prov_errno, entry.err_data, buffer,
                                    sizeof buffer);
  core::log(LogLevel::warning, "{} {}: the provider reports: {} ({})", spec_->name, record_.domain,
            fabric_text(entry.err), text != nullptr ? text : "");
}

std::size_t FabricEndpoint::poll() {
  if (state_ != State::open) return 0;
  ++polls_since_edge_;
  if (handles_.events && ++polls_ % polls_per_event_look == 0) look_at_events();
  std::array<fi_cq_msg_entry, 32> entries;
  const ssize_t count = read_queue(entries);
  if (count == -FI_EAVAIL) return report_errors();
  if (count <= 0) return 0;
  handed_over(&every_endpoint);
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
    Posted* posted = named(entry.op_context);
    if (posted == nullptr) continue;
    under_way_.remove(*posted);
    Completion completion;
    completion.length = entry.len;
    posted->handler->completed(*posted, completion);
  }
  return static_cast<std::size_t>(count);
}

void FabricEndpoint::take_in_arrivals(Deadline deadline) {
  const Capability& record = capability();
  if (record.write != Origin::emulated && record.read != Origin::emulated) return;
  // Nothing tells that no packet is left, so there are enough polls for as many as a NIC has
  // receives for. efa takes 50 at each (1.17, rxr_env.c: efa_cq_read_size).
  constexpr std::size_t packets = 32;
  for (std::size_t left = info_->rx_attr->size / packets + 1; left > 0 && !deadline.passed();)
    if (poll() == 0) --left;
}

std::size_t FabricEndpoint::report_errors() {
  // Zeroed: libfabric copies provider data to err_data if that is set.
  fi_cq_err_entry entry{};
  {
    const auto lock = guard();
    if (fi_cq_readerr(handles_.queue.get(), &entry, 0) != 1) return 0;
  }
  Posted* posted = named(entry.op_context);
  if (posted == nullptr) return 1;
  under_way_.remove(*posted);
  char buffer[128] = "";
  // Some providers fill the buffer, others only return the text.
  const char* text =
      fi_cq_strerror(handles_.queue.get(), entry.prov_errno, entry.err_data, buffer, sizeof buffer);
  Completion completion;
  completion.ok = false;
  completion.fabric_code = entry.err;
  completion.provider_code = entry.prov_errno;
  std::string words = text != nullptr ? text : "";
  if (spec_->advice != nullptr) words += spec_->advice(entry.prov_errno);
  completion.text = words;
  completion.path_failed = spec_->path_failed != nullptr && spec_->path_failed(entry.prov_errno);
  completion.too_long = entry.err == FI_ETRUNC;
  posted->handler->completed(*posted, completion);
  return 1;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> open_endpoint(const Spec& spec, const Way& way,
                                                const fi_info& nic, bool device_memory) {
  auto endpoint = std::make_unique<FabricEndpoint>();
  if (auto opened = endpoint->open(spec, way, nic, device_memory); !opened)
    return fail(std::move(opened.error()));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace weft::providers
