#include "providers/shm/neighbour.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::providers::shm {
namespace {

/// Raises the number of slots ever used to `count`.
void raise(std::atomic<std::uint32_t>& claimed, std::uint32_t count) {
  std::uint32_t before = claimed.load();
  while (before < count && !claimed.compare_exchange_weak(before, count)) {
  }
}

}  // namespace

Result<std::shared_ptr<Neighbour>> Neighbour::meet(const Address& address,
                                                   std::shared_ptr<const core::HostProcess> process,
                                                   std::uint64_t own_nonce) {
  // The process is known first: if it is alive when the nonce has been read, the nonce is its own.
  std::shared_ptr<Neighbour> neighbour(new Neighbour(address, std::move(process)));
  const core::HostProcess& owner = *neighbour->process_;
  auto region =
      owner.open({{address.nonce, region_number}, address.region, "/memfd:weft-shm", O_RDWR});
  if (!region) return fail(std::move(region.error()));
  // For reading too: a pipe that its owner has closed must not raise SIGPIPE here.
  auto bell = owner.open({{address.nonce, bell_number}, address.bell, "pipe:", O_RDWR});
  if (!bell) return fail(std::move(bell.error()));
  neighbour->bell_ = std::move(*bell);
  return check_region(*region)
      .and_then([&] { return map_head(*region); })
      .and_then([&](Mapped<Head> head) -> Result<void> {
        neighbour->head_ = std::move(head);
        if (neighbour->head_->nonce != address.nonce || neighbour->gone())
          return fail(Code::stale, "the endpoint of that address is gone");
        return neighbour->claim_slot(*region, own_nonce);
      })
      .map([&] { return neighbour; });
}

Result<void> Neighbour::claim_slot(const Descriptor& region, std::uint64_t own_nonce) {
  for (std::size_t index = 0; index < slot_count; ++index) {
    Claim& claim = head_->claims[index];
    std::uint64_t expected = 0;
    if (!claim.owner.compare_exchange_strong(expected, own_nonce)) continue;
    claim.pid_namespace.store(own_pid_namespace());
    claim.pid.store(static_cast<std::uint32_t>(getpid()));
    raise(head_->claimed, static_cast<std::uint32_t>(index + 1));
    index_ = index;
    mappings_ = std::make_unique<Mappings>(*head_, claim, process_);
    return map_slot(region, index).map([&](Mapped<Slot> slot) { slot_ = std::move(slot); });
  }
  return fail(Code::unavailable, fmt::format("{} peers send to the endpoint already", slot_count));
}

Neighbour::~Neighbour() {
  if (!head_ || index_ == slot_count) return;
  mappings_.reset();
  head_->claims[index_].owner.store(left);
  announce();
}

namespace {

/// Tells the neighbour which key is being copied by. Before the key is looked at: its owner closes
/// it first, and looks here after that.
class Telling {
 public:
  Telling(Copying& copying, std::uint64_t key) : copying_(copying) {
    copying_.key.store(key, std::memory_order_seq_cst);
  }
  ~Telling() { copying_.key.store(0, std::memory_order_release); }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  Copying& copying_;
};

}  // namespace

std::optional<Outcome> Neighbour::copy(std::size_t index, bool writes, const Local& local,
                                       const Target& target, Means means,
                                       SharedCopy* shared) noexcept {
  Copier& copier = copiers_[index];
  const Telling telling(head_->claims[index_].copying[index], target.key);
  if (const Outcome refused = refusal(writes, local, target); refused.error != 0) return refused;
  if (const View* view = view_for(copier, writes, local, target))
    return gone_by_now(copier, local.length) ? Outcome{ECONNRESET, "the peer's process has ended"}
                                             : copy_through(*view, writes, local, target, shared);
  if (means == Means::mapping) return std::nullopt;
  return copy_by_kernel(writes, local, target);
}

const Entry& Neighbour::entry_of(std::uint64_t key) const noexcept {
  return head_->entries[key % entry_count];
}

Outcome Neighbour::refusal(bool writes, const Local& local, const Target& target) const noexcept {
  const Entry& entry = entry_of(target.key);
  if (target.key == 0 || entry.key.load(std::memory_order_seq_cst) != target.key)
    return {EKEYREJECTED, "the key is not, or no longer, valid"};
  const auto access = static_cast<Access>(entry.access);
  if (access != Access::remote_read_write &&
      access != (writes ? Access::remote_write : Access::remote_read))
    return {EACCES, "the registration lacks the right"};
  if (target.address > entry.length || local.length > entry.length - target.address)
    return {EACCES, "outside the registration"};
  return {};
}

/// Null: the kernel has to copy, which finds pages that are gone without harm.
const View* Neighbour::view_for(Copier& copier, bool writes, const Local& local,
                                const Target& target) {
  if (local.may_fault) return nullptr;
  if (copier.key != target.key || copier.view == nullptr) {
    copier.view = process_->waits() ? mappings_->known(target.key) : mappings_->of(target.key);
    copier.key = target.key;
  }
  const View* const view = copier.view.get();
  return view != nullptr && view->lets(writes, target.address, local.length) ? view : nullptr;
}

Outcome Neighbour::copy_through(const View& view, bool writes, const Local& local,
                                const Target& target, SharedCopy* shared) noexcept {
  std::byte* const there = view.start + target.address;
  std::byte* const here = static_cast<std::byte*>(local.address);
  std::byte *const to = writes ? there : here, *const from = writes ? here : there;
  if (shared != nullptr)
    shared->copy(to, from, local.length);
  else
    std::memcpy(to, from, local.length);
  return {.mapped = true};
}

/// A number that has been given to another process would be a disaster. (A process that becomes
/// another program by exec keeps its number: until the control connection tells of its end, copies
/// go to addresses that mean nothing there.)
Outcome Neighbour::copy_by_kernel(bool writes, const Local& local,
                                  const Target& target) const noexcept {
  if (gone()) return {ECONNRESET, "the peer's process has ended"};
  const std::int32_t pid = process_->pid();
  if (pid == 0) return {EOPNOTSUPP, "the memory is not mapped, and the kernel can't copy it"};
  const std::uint64_t start = entry_of(target.key).address;
  const iovec here{local.address, local.length};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(start + target.address)),
                    local.length};
  const ssize_t copied = writes ? process_vm_writev(pid, &here, 1, &there, 1, 0)
                                : process_vm_readv(pid, &here, 1, &there, 1, 0);
  if (copied == static_cast<ssize_t>(local.length)) return {};
  if (copied >= 0) return {EFAULT, "the memory ends before the range does"};
  if (errno == ESRCH) return {ECONNRESET, "the peer's process has ended"};
  return {errno, "process_vm_writev or process_vm_readv refused"};
}

/// Memory that is mapped stays what it was, so now and then is enough: a system call costs as much
/// as copying some ten kilobytes.
bool Neighbour::gone_by_now(Copier& copier, std::size_t bytes) const noexcept {
  constexpr std::size_t bytes_a_look = std::size_t{4} << 20,
                        least_of_a_copy = std::size_t{32} << 10;
  if (copier.left_until_look == 0) {
    copier.left_until_look = bytes_a_look;
    copier.ended = gone();
  }
  copier.left_until_look -= std::min(copier.left_until_look, bytes + least_of_a_copy);
  return copier.ended;
}

Result<void> Neighbour::check_mapped(std::uint64_t key) const {
  const bool open = key != 0 && head_->entries[key % entry_count].key.load() == key;
  const auto view = open ? mappings_->of(key) : nullptr;
  if (view == nullptr) return fail(Code::stale, "the key is not, or no longer, valid");
  if (view->file == nullptr) return fail(Code::unsupported, view->why_not);
  return {};
}

Result<void> Neighbour::reach(std::uint64_t key) const {
  return process_->pid() != 0 ? Result<void>() : check_mapped(key);
}

void Neighbour::announce() const noexcept {
  head_->pending[index_ / 64].fetch_or(std::uint64_t{1} << (index_ % 64),
                                       std::memory_order_seq_cst);
  ring();
}

}  // namespace weft::providers::shm
