#include "nixl/remote_memory.hpp"

#include <fmt/format.h>

#include <span>

#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

Result<Remote> import_over(const Link& link, const std::string& grant, Deadline deadline) {
  if (auto reached = link.outcome(); !reached) return fail(std::move(reached.error()));
  return link.engine().import(std::as_bytes(std::span(grant)), deadline);
}

/// There is nothing to wait for.
bool is_final(const Error& error) {
  return error.code() != Code::timed_out && error.code() != Code::peer_down;
}

}  // namespace

Result<ImportPtr> Import::begin(const LinkPtr& link, std::string grant) {
  const ImportPtr import(new Import(link));
  auto begun = link->later([import, grant = std::move(grant)] {
    // Nobody waits for it any more.
    if (import.use_count() == 1) return;
    auto remote = import_over(*import->link_, grant, Deadline::in(import->link_->timeout()));
    if (!remote && import->link_->outcome())
      refuse("an agent's memory can't be used", remote.error());
    const core::Lock lock(import->mutex_);
    import->remote_ = std::move(remote);
  });
  if (!begun) return fail(std::move(begun.error()));
  return import;
}

bool Import::ended() const {
  const core::Lock lock(mutex_);
  return remote_.has_value();
}

Result<Remote> Import::remote() const {
  const core::Lock lock(mutex_);
  if (remote_) return *remote_;
  return fail(Code::timed_out, fmt::format("agent '{}' has not answered in time", link_->agent()));
}

bool Import::usable() const {
  const core::Lock lock(mutex_);
  return link_->usable() && (!remote_ || *remote_);
}

Result<std::unique_ptr<RemoteMemory>> RemoteMemory::load(const LinkPtr& link,
                                                         const abi::BlobDescriptor& memory) {
  const auto remote =
      link->engine().import(std::as_bytes(std::span(memory.blob)), link->courtesy());
  if (!remote && is_final(remote.error())) return fail(remote.error());
  if (!remote && remote.error().code() == Code::timed_out) link->was_silent();
  auto import = remote ? Result<ImportPtr>(std::make_shared<Import>(link, *remote))
                       : Import::begin(link, memory.blob);
  if (!import) return fail(std::move(import.error()));
  return std::unique_ptr<RemoteMemory>(new RemoteMemory(std::move(*import), memory));
}

Result<ImportPtr> RemoteMemory::reach(Agents& agents) {
  const core::Lock lock(mutex_);
  if (import_->usable()) return import_;
  const auto link = agents.meet_again(import_->link()->agent());
  if (!link) return fail(link.error());
  auto import = Import::begin(*link, grant_);
  if (import) import_ = *import;
  return import;
}

}  // namespace weft::nixl
