// One libfabric endpoint with its domain, completion queue and address vector: what a rail is made
// of. The only place through which the core reaches libfabric.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "base/process.hpp"
#include "providers/extent.hpp"

namespace weft::providers {

struct Posted;

/// How an operation ended.
struct Completion {
  bool ok = true;
  std::size_t length = 0;  // bytes received, for receives
  int fabric_code = 0;     // positive libfabric error
  int provider_code = 0;
  std::string_view text;  // the provider's words; valid during the call
  // Set by those above the provider, with `text`, where the other side did not allow it.
  Code refusal{};
  bool unsent = false;       // likewise: nothing of it went out
  bool path_failed = false;  // the way to the peer is at fault: another NIC may do better
  bool too_long = false;     // a receive's buffer was too small for what was sent
  // The bytes were copied by this process through a mapping of the peer's memory, where they are
  // else copied as the record says.
  bool mapped = false;
  // The endpoint that it was posted with is closed: it is over, with an unknown result.
  bool cut = false;
};

/// Told of the end of an operation that it posted, once, on the thread that polls.
class CompletionHandler {
 public:
  virtual void completed(Posted& posted, const Completion& completion) = 0;

 protected:
  ~CompletionHandler() = default;
};

/// Base of everything that is posted. It must stay in place until completed() was called.
struct Posted {
  // libfabric may keep notes here: sizeof(struct fi_context2), rdma/fabric.h.
  alignas(8) std::byte fabric_context[64];
  CompletionHandler* handler = nullptr;
  Posted *before = nullptr, *after = nullptr;  // the endpoint's (UnderWay)
  bool sends = false;                          // likewise
};

/// fi_addr_t.
using FabricAddress = std::uint64_t;

class Registration;

/// A local buffer.
struct Local {
  void* address = nullptr;
  std::size_t length = 0;
  const Registration* registration = nullptr;  // where the provider needs one
  /// Behind a file that can be made smaller: a process that touches it itself may die of SIGBUS.
  bool may_fault = false;
};

/// Who copies: the caller alone; the caller helped by the thread that polls the endpoint, where
/// that is idle; or the kernel in the caller's name, which needs no mapping.
enum class CopyBy { callers, callers_and_pollers, kernels };

/// FI_ADDR_UNSPEC.
inline constexpr FabricAddress unknown_peer = ~FabricAddress{0};

/// Remote memory: `address` is an offset or a pointer as the capability record says.
struct Target {
  bool known() const noexcept { return peer != unknown_peer; }

  FabricAddress peer = 0;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

/// Most that any provider gets in one operation.
inline constexpr std::size_t most_rma_pieces = 4;

/// A part of a read or write: as many bytes on either side.
struct RmaPiece {
  Local local;
  Target target;
};

/// The result of a post: 0 posted, `again` no room now, else a libfabric error.
enum class PostStatus : std::uint8_t { posted, again, failed };
struct Post {
  PostStatus status = PostStatus::posted;
  int fabric_code = 0;
};

/// One of several reads or writes that are posted at once.
struct RmaPost {
  Posted* posted = nullptr;
  RmaPiece piece;
};

/// How many of several were posted, and what became of the one behind them, where there is one.
struct BatchPost {
  std::size_t posted = 0;
  Post refusal;
};

/// Posts them by `post(each)`, up to the first that is refused.
template <typename Each, typename Call>
BatchPost post_in_order(std::span<const Each> all, Call&& post) {
  BatchPost batch;
  for (const Each& each : all) {
    batch.refusal = post(each);
    if (batch.refusal.status != PostStatus::posted) break;
    ++batch.posted;
  }
  return batch;
}

/// The purpose of a registration: as the near side of reads and writes, as their far side, or for
/// messages, which some providers (ofi_rxm) let the peer fetch from where they lie. `source` is the
/// near side of memory that must not be written. Numbers stay: shm rails share them.
enum class Access : std::uint8_t {
  local,
  remote_read,
  remote_write,
  remote_read_write,
  messages,
  source
};

/// Memory known to one endpoint, which must outlive it. Closed by its destructor at the latest.
class Registration {
 public:
  virtual ~Registration() = default;
  virtual void* descriptor() const noexcept = 0;
  virtual std::uint64_t key() const noexcept = 0;
  /// May block. The second time it does nothing and returns true. False if it could not be closed,
  /// or a peer is known to be still at it; how much true proves is FenceScope's matter.
  virtual bool close() = 0;
  /// From here on it is not registered again when its endpoint is opened again. From any thread.
  virtual void retire() noexcept {}
  /// Why it could not be registered again when its endpoint was opened again: nothing can be posted
  /// with it, and its key is gone, for good. Null: that has not happened. From any thread.
  virtual const Error* lost() const noexcept { return nullptr; }
};

/// Messages come in classes with their own receive buffers, so that a small one is never received
/// into a large buffer's place.
enum class MessageClass : std::uint64_t { message = 1, bounce = 2 };

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Capability& capability() const noexcept = 0;
  virtual const Blob& address() const noexcept = 0;

  /// From any thread; may block.
  virtual Result<FabricAddress> insert(Bytes address) = 0;
  /// The same for an endpoint of a process of this host, whose descriptors come from there.
  virtual Result<FabricAddress> insert_of(Bytes address,
                                          const std::shared_ptr<const core::HostProcess>&) {
    return insert(address);
  }
  virtual void remove(FabricAddress peer) = 0;
  virtual Result<std::unique_ptr<Registration>> register_memory(const Extent& memory,
                                                                Access access) = 0;

  /// Whether reads and writes by that key go through a mapping of the peer's memory
  /// (Completion::mapped), or why they don't, as a part of a sentence. From any thread; may block.
  virtual Result<void> check_mapped(FabricAddress, std::uint64_t /*key*/) {
    return fail(Code::unsupported, "the provider maps no memory");
  }

  /// Makes ready to read and write by that key. An error: the provider does not reach the memory,
  /// and what it must be copied by is messages. From any thread; may block.
  virtual Result<void> reach(FabricAddress, std::uint64_t /*key*/) { return {}; }
  /// One of its descriptors, for a peer of this host; or of the files that memory lies in, by the
  /// memory's key. From any thread.
  virtual Result<core::Descriptor> show(const core::DescriptorName&) const {
    return fail(Code::not_found, "the endpoint shows no descriptors");
  }

  /// Copies through such a mapping, or in a system call, here and now. False: that can't be done,
  /// or not at the moment, and nothing has been touched; by the kernel it may be half done where it
  /// can't be done at all. From any thread.
  virtual bool copy_inline(bool /*writes*/, const Local&, const Target&, CopyBy) { return false; }

  /// By the owning thread only, and without waiting.
  virtual Post write(Posted& posted, const Local& local, const Target& target) = 0;
  virtual Post read(Posted& posted, const Local& local, const Target& target) = 0;
  /// Up to Capability::rma_pieces at a time, all at one peer, which end together.
  virtual Post write_list(Posted&, std::span<const RmaPiece>) {
    return {PostStatus::failed, ENOSYS};
  }
  virtual Post read_list(Posted&, std::span<const RmaPiece>) {
    return {PostStatus::failed, ENOSYS};
  }
  /// Reads or writes in their order, up to the first that is refused. All that were posted have
  /// started when it returns; with Capability::shared_doorbell none may start before.
  virtual BatchPost post_all(bool writes, std::span<const RmaPost> posts) {
    return post_in_order(posts, [&](const RmaPost& each) {
      const auto& [local, target] = each.piece;
      return writes ? write(*each.posted, local, target) : read(*each.posted, local, target);
    });
  }
  virtual Post send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) = 0;
  /// Which of those posted for a class gets the next message is the provider's choice.
  virtual Post receive(Posted& posted, const Local& local, MessageClass type) = 0;
  /// Takes a receive back. True: it is over, and its handler is not told. False: it ends like any
  /// other, at once and as failed where the provider can do that, else with the next message. May
  /// be called for what is not posted, too.
  virtual bool take_back(Posted&, MessageClass) { return false; }
  /// Hands up to some dozen completions to their handlers; returns how many.
  virtual std::size_t poll() = 0;
  /// Where this process carries out what peers ask for: does so with all that has arrived by now.
  /// Their operations may have ended for them, and still need keys here. By the owning thread, and
  /// without waiting; polls meanwhile. Gives up at the deadline, should there be no end of them.
  virtual void take_in_arrivals(Deadline) {}
  /// A descriptor that becomes readable when poll() has something to do; -1 where there is none.
  virtual int wait_fd() const noexcept = 0;
  /// True if it is safe to sleep on wait_fd() now.
  virtual bool may_sleep() = 0;

  /// Whether it can be closed and opened again: nothing that was posted with it before, by either
  /// side, touches memory after that. In this order: suspend() by the owning thread, reopen() by
  /// any, which may block, and resume() by the owning thread. What was posted ends as `cut` in
  /// resume(). Registrations are registered again, with other keys where the provider chooses them;
  /// those of devices' memory may be lost. The address is another one, and the peers' addresses are
  /// forgotten.
  virtual bool reopens() const noexcept { return false; }
  /// Hands out what has ended by now. Nothing is posted (PostStatus::again) or polled from then
  /// on.
  virtual void suspend() {}
  /// An error: it is closed, and could not be opened; or `quarantined`: it could not be closed, and
  /// nothing has changed. It may be tried again.
  virtual Result<void> reopen() {
    return fail(Code::unsupported, "this provider's endpoints can't be opened again");
  }
  virtual void resume() {}

  /// Stops it for good, which may block: afterwards nothing that was posted touches memory, and
  /// registrations may be closed. Only they, and the endpoint itself, may be destroyed then. Does
  /// nothing where registrations may be closed under posted operations.
  virtual void shut() {}
};

/// The text of a libfabric error number.
std::string fabric_text(int code);

}  // namespace weft::providers
