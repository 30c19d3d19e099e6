// Memory that requests name as the remote side: another agent's, or this one's own.
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
#include "nixl/registration.hpp"

namespace weft::nixl {

/// A grant as it was imported over a link, or is being imported behind it.
class Import {
 public:
  /// Asks the owner, behind what waits for the link.
  static Result<std::shared_ptr<Import>> begin(const LinkPtr& link, std::string grant);
  /// Whose owner has answered.
  Import(LinkPtr link, const Remote& remote) : link_(std::move(link)), remote_(remote) {}

  const LinkPtr& link() const noexcept { return link_; }
  bool ended() const;
  /// `timed_out` until it has ended.
  Result<Remote> remote() const;
  /// On its way, or imported over a link that is up.
  bool usable() const;

 private:
  explicit Import(LinkPtr link) : link_(std::move(link)) {}
  const LinkPtr link_;
  mutable core::Mutex mutex_;
  std::optional<Result<Remote>> remote_ WEFT_GUARDED_BY(mutex_);
};

using ImportPtr = std::shared_ptr<Import>;

/// Of another agent, which gave `grant`.
class RemoteMemory : public abi::Metadata {
 public:
  /// Imports it, behind the call if the owner does not answer soon. Fails at once for what can't be
  /// a grant.
  static Result<std::unique_ptr<RemoteMemory>> load(const LinkPtr& link,
                                                    const abi::BlobDescriptor& memory);

  /// How it is reached now. A peer that was declared dead, because it stood still, and that goes
  /// on, is met again by this: not every libnixl forgets the metadata of one that was disconnected.
  Result<ImportPtr> reach(Agents& agents);
  /// Its first byte, in the other agent's process; of a file its offset.
  const abi::Descriptor& memory() const noexcept { return memory_; }

 private:
  RemoteMemory(ImportPtr import, const abi::BlobDescriptor& memory)
      : Metadata(false), grant_(memory.blob), memory_(memory), import_(std::move(import)) {}
  const std::string grant_;
  const abi::Descriptor memory_;
  core::Mutex mutex_;
  ImportPtr import_ WEFT_GUARDED_BY(mutex_);
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
