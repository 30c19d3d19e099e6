/// @file
/// The rights that other engines get to a segment.
#pragma once

#include <cstdint>
#include <memory>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/place.hpp>

namespace weft {

namespace core {
class GrantState;
}  // namespace core

/// What a peer may do with granted memory.
enum class Rights : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Whether a grant shares its keys with other grants of the segment that have the same rights.
enum class Keys : std::uint8_t {
  automatic,  ///< Shared where registering is slow (Capability::pins_memory): a grant then takes
              ///< microseconds once the memory is registered. With such a key, a peer that breaks
              ///< the protocol can reach anything in the same extent.
  own,        ///< Never shared: keys cover the first to the last granted byte of an extent and are
              ///< closed with the grant. Registers with each NIC, which takes time and pins pages.
};

/// How a grant ended.
enum class Revoked : std::uint8_t {
  quiescent,  ///< The memory may be reused: no byte of a peer can arrive any more, and what a peer
              ///< reads from now on is not accepted.
  quarantined,  ///< A peer may still write. The memory stays registered; don't reuse it.
};

/// A lease: the right of peers to read or write some ranges of a segment. It holds until it is
/// revoked, its time is over, or its segment is released. Destroying the handle does not end it.
///
/// A read under a grant that has ended fails as `stale`, even if bytes came: after they came, the
/// reader checks that the lease still held. A write is different: every writer has to stop before
/// the memory can be used for something else. So the end of a write grant is a handshake.
class WEFT_API Grant {
 public:
  Grant(Grant&&) noexcept;
  Grant& operator=(Grant&&) noexcept;
  ~Grant();

  /// The grant in serialised form, some hundred bytes, and 40 for each rail and extent. Any channel
  /// may carry it to a peer, where Engine::import reads it. It holds no pointers. Every process
  /// that has it can use it.
  Blob blob() const;
  /// Identifies the grant within its engine.
  std::uint64_t lease_id() const noexcept;
  /// Extends the grant to at least `ttl` from now. Keys, imports and Prepared lists stay good.
  /// Holders are told; a holder that is not told in time stops at the old expiry, and its transfers
  /// end as `stale`: renew while more is left than a message takes. Fails with `stale` if the grant
  /// holds no more. From any thread; does not wait.
  Result<void> renew(Nanoseconds ttl);
  /// Ends the grant. New transfers under it are refused. Those under way end as `stale`, and send
  /// no further chunks. If peers may write, waits until each holder has drained its operations and
  /// confirmed.
  ///
  /// Returns `quarantined` if a holder does not confirm by the deadline, or is gone without a word
  /// and can't be kept out by closing the grant's keys (Capability::fence): it may be frozen, with
  /// operations in its NIC. May be called again, to wait longer or to learn that the last holder
  /// has confirmed. Not for callbacks; neither are fence() and Segment::release().
  Result<Revoked> revoke(Deadline deadline);
  /// revoke() without waiting for holders: closes the grant's keys, so that operations of peers are
  /// refused on arrival. These end with errors of the fabric; on some fabrics the connection
  /// breaks. Keys that it shares with grants that hold are replaced: their holders get new ones,
  /// and are waited for until the deadline; operations still in flight under the old keys are then
  /// lost. Returns `quarantined` if a peer is within a copy (over shm) that takes longer than half
  /// a second.
  ///
  /// `reach` is how far it may go. A rail that can't cut off one grant alone (Capability::fence)
  /// fails with `unsupported`, unless `reach` is FenceScope::rail. Then each such rail is closed
  /// and opened again, as by Engine::reopen(), which hurts other peers on it.
  Result<Revoked> fence(Deadline deadline, FenceScope reach = FenceScope::grant);
  /// After revoke() or fence() returned `quarantined`: an error of that code that says why, as that
  /// a holder is gone. From any thread; does not wait.
  Error why_quarantined() const;

 private:
  friend class Segment;
  friend class Engine;
  explicit Grant(std::shared_ptr<core::GrantState> state);
  std::shared_ptr<core::GrantState> state_;
};

}  // namespace weft
