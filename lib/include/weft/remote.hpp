/// @file
/// Memory of a peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <weft/export.hpp>
#include <weft/grant.hpp>
#include <weft/place.hpp>

namespace weft {

namespace core {
class RemoteState;
}  // namespace core

/// A peer's grant, imported: memory of the peer. Transfers name parts of it by offset. Cheap to
/// copy.
class WEFT_API Remote {
 public:
  Remote(const Remote&) = default;  // moving copies too: a handle is never empty
  Remote& operator=(const Remote&) = default;

  /// Name of the engine that owns the memory.
  const std::string& peer() const noexcept;
  /// Size of the peer's segment, in bytes. Offsets count from its start.
  std::uint64_t segment_size() const noexcept;
  /// The granted ranges, sorted by offset.
  std::span<const Range> ranges() const noexcept;
  Rights rights() const noexcept;
  Place place() const noexcept;

 private:
  friend class Engine;
  friend class Peer;
  explicit Remote(std::shared_ptr<core::RemoteState> state);
  std::shared_ptr<core::RemoteState> state_;
};

}  // namespace weft
