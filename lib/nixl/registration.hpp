// The backend's state for registered memory, of this agent's and of others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"
#include "nixl/agents.hpp"
#include "nixl/link.hpp"
#include "nixl/named_file.hpp"

namespace weft::nixl {

/// What a registration is of. Of a file or a block device the address is an offset.
struct Registered : abi::Descriptor {
  Memory memory;
  std::optional<NamedFile> file;  ///< That `memory` is of.
  FileNumbers::Claim number;
};

/// Memory of this agent's: a segment, and the one grant on it that all peers and requests use.
class Registration : public abi::Metadata {
 public:
  static Result<std::unique_ptr<Registration>> make(Engine& engine, FileNumbers& numbers,
                                                    const abi::BlobDescriptor& memory,
                                                    abi::MemoryType type);
  Registration(Segment segment, Grant grant, Registered of)
      : Metadata(true),
        segment_(std::make_shared<Segment>(std::move(segment))),
        grant_(std::move(grant)),
        of_(std::move(of)) {}

  /// Requests keep it, which libnixl may hold for longer than this.
  const std::shared_ptr<Segment>& segment() const noexcept { return segment_; }
  /// What it is of, for another engine too.
  const Registered& of() const noexcept { return of_; }
  /// It may be read and not written: a file that was opened so.
  bool source() const noexcept { return of_.file && of_.file->read_only(); }
  Blob grant() const { return grant_.blob(); }

  /// Ends the grant and unregisters the memory, once no peer can touch it any more: a holder that
  /// does not confirm is cut off with the rails that they hold, which hurts bystanders.
  /// `quarantined` if that can't be had either by the deadline: then this must stay.
  Result<void> release(Deadline deadline);

 private:
  const std::shared_ptr<Segment> segment_;
  Grant grant_;
  Registered of_;
};

/// Memory that requests name as the remote side.
class RemoteMemory : public abi::Metadata {
 public:
  struct Reach {
    LinkPtr link;
    Remote remote;
  };
  /// Of another agent, which gave `grant`.
  RemoteMemory(Reach reach, std::string grant, std::uintptr_t base)
      : Metadata(false), grant_(std::move(grant)), base_(base), reach_(std::move(reach)) {}

  /// How it is reached now. A peer that was declared dead, because it stood still, and that goes
  /// on, is met again by this: not every libnixl forgets the metadata of one that was disconnected.
  Result<Reach> reach(Agents& agents);
  /// The address of its first byte, in the other agent's process; of a file its offset.
  std::uintptr_t base() const noexcept { return base_; }

 private:
  const std::string grant_;
  const std::uintptr_t base_;
  core::Mutex mutex_;
  Reach reach_ WEFT_GUARDED_BY(mutex_);
};

/// Memory of this agent's as the remote side of its own transfers.
class OwnMemory : public abi::Metadata {
 public:
  explicit OwnMemory(Registration& of) : Metadata(true), of_(of) {}
  Registration& registration() const noexcept { return of_; }

 private:
  Registration& of_;
};

}  // namespace weft::nixl
