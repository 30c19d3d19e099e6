// Grants to and from their wire form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/grant.hpp>

namespace weft::core {

/// Of a word of memory, or of a part of a granted segment.
struct RailKey {
  std::uint32_t rail = 0;  // the owner's rail index
  std::uint64_t base = 0;  // address of the first byte on that rail
  std::uint64_t key = 0;
  Range part = {};  // in the segment: within one extent
};

/// A key of a grant, and that of its lease word, where they are others than the grant says: the
/// owner's rail was closed and opened again, or the key was replaced.
struct RenewedKey {
  std::uint64_t lease = 0;
  std::uint32_t rail = 0;
  std::uint64_t from = 0;  // where the key's part begins
  std::uint64_t key = 0, epoch_key = 0;
  /// The rail could not register the part again, for that reason: it has no key for it any more.
  std::optional<std::string> why_lost = {};
};

/// A rail of the owner's that has no key for the memory: it carries it through the bounce-buffer
/// transport, which asks the owner each time.
struct BouncedRail {
  std::uint32_t rail = 0;
  std::string why = {};  // as a part of a sentence; empty: not known
};

struct GrantDescription {
  std::string engine;
  std::uint64_t incarnation = 0;
  std::string address;
  std::uint64_t segment = 0;
  std::uint64_t segment_size = 0;
  Place place;
  Rights rights = Rights::read;
  std::uint64_t lease = 0;
  Nanoseconds ttl = unlimited;  // from when it was made
  std::uint64_t epoch = 0;      // what the lease's word holds while the lease does
  std::vector<Range> ranges;    // sorted, not empty, inside the segment, not overlapping
  std::uint64_t extent_bytes = std::uint64_t{1} << 63;  // a power of two
  std::vector<RailKey> keys;                            // one for a rail and extent
  std::vector<RailKey> epoch_keys;                      // of the lease's word
  std::vector<BouncedRail> bounced = {};
  std::uint64_t block_bytes = 1;  // a power of two: pieces are whole blocks
};

/// Most ranges of one grant: a bound against made-up blobs.
constexpr std::size_t max_granted_ranges = 1 << 20;
/// Likewise of its keys: 4 rails that register 16 TiB in extents of 4 GiB.
constexpr std::size_t max_granted_keys = 1 << 14;

/// From the first byte to the last that is granted within a part of the segment; empty if none is.
/// The ranges are a grant's.
Range hull_within(std::span<const Range> ranges, const Range& part);

Blob encode_grant(const GrantDescription& grant);

/// Verifies the blob, which may come from anywhere, before it believes it.
Result<GrantDescription> decode_grant(Bytes blob);

}  // namespace weft::core
