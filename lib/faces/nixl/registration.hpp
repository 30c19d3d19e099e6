// The backend's state for registered memory of this agent's.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <weft/engine.hpp>

#include "nixl/abi.hpp"
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

  /// Its device number may stand for another file: libnixl has forgotten the registration.
  void forget_number() { of_.number = {}; }
  /// Ends the grant and unregisters the memory, once no peer can touch it any more: a holder that
  /// does not confirm is cut off with the rails that they hold, which hurts bystanders.
  /// `quarantined` if that can't be had either by the deadline: then this must stay.
  Result<void> release(Deadline deadline);

 private:
  const std::shared_ptr<Segment> segment_;
  Grant grant_;
  Registered of_;
};

}  // namespace weft::nixl
