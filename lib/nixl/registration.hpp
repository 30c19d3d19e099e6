// The backend's state for registered memory of this agent's.
#pragma once

#include <memory>
#include <utility>
#include <weft/engine.hpp>

#include "nixl/abi.hpp"

namespace weft::nixl {

/// What a descriptor stands for. That of a file or a block device has an offset in the place of an
/// address, and a descriptor of the system's in that of a device's number.
Result<Memory> memory_of(const abi::Descriptor& memory, abi::MemoryType type);

/// Memory of this agent's: a segment, and the one grant on it that all peers and requests use.
class Registration : public abi::Metadata {
 public:
  static Result<std::unique_ptr<Registration>> make(Engine& engine, const abi::Descriptor& memory,
                                                    abi::MemoryType type);
  Registration(Segment segment, Grant grant, const abi::Descriptor& memory, abi::MemoryType type,
               bool source)
      : Metadata(true),
        segment_(std::make_shared<Segment>(std::move(segment))),
        grant_(std::move(grant)),
        memory_(memory),
        type_(type),
        source_(source) {}

  /// Requests keep it, which libnixl may hold for longer than this.
  const std::shared_ptr<Segment>& segment() const noexcept { return segment_; }
  const abi::Descriptor& memory() const noexcept { return memory_; }
  abi::MemoryType type() const noexcept { return type_; }
  /// It may be read and not written: a file that was opened so.
  bool source() const noexcept { return source_; }
  Blob grant() const { return grant_.blob(); }

  /// Ends the grant and unregisters the memory, once no peer can touch it any more: a holder that
  /// does not confirm is cut off with the rails that they hold, which hurts bystanders.
  /// `quarantined` if that can't be had either by the deadline: then this must stay.
  Result<void> release(Deadline deadline);

 private:
  const std::shared_ptr<Segment> segment_;
  Grant grant_;
  const abi::Descriptor memory_;
  const abi::MemoryType type_;
  const bool source_;
};

}  // namespace weft::nixl
