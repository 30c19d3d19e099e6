#include "shm_stranger.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/random.hpp"
#include "engines.hpp"
#include "providers/shm/region.hpp"
#include "providers/shm/shm.hpp"

namespace weft::test {
namespace shm = providers::shm;
namespace {

shm::Mapped<shm::Head> head_of(const shm::Address& victim) {
  const std::string path =
      "/proc/" + std::to_string(victim.pid) + "/fd/" + std::to_string(victim.region);
  return must(shm::map_head(shm::Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC))));
}

Ending ending_of(ssize_t copied, std::size_t length) {
  if (copied == static_cast<ssize_t>(length)) return {};
  return {Ending::refused, copied < 0 ? errno : EFAULT};
}

struct Sent final : providers::Posted, providers::CompletionHandler {
  Sent() { handler = this; }
  void completed(providers::Posted&, const providers::Completion& completion) override {
    ended = true;
    ending = {completion.ok ? Ending::done : Ending::refused, completion.fabric_code};
  }
  bool ended = false;
  Ending ending;
};

}  // namespace

ShmStranger::ShmStranger(const std::string& address, std::span<std::byte> memory)
    : memory_(memory), endpoint_(must(shm::open_endpoint())) {
  std::memcpy(&victim_, address.data(), sizeof victim_);
  peer_ = must(endpoint_->insert(std::as_bytes(std::span(address))));
}

std::uint64_t ShmStranger::base_of(std::uint64_t key) const {
  return head_of(victim_)->entries[key % shm::entry_count].address;
}

Ending ShmStranger::write(const Aim& aim, std::size_t length, Deadline) {
  const iovec here{memory_.data(), length}, there{reinterpret_cast<void*>(aim.address), length};
  return ending_of(process_vm_writev(victim_.pid, &here, 1, &there, 1, 0), length);
}

Ending ShmStranger::read(const Aim& aim, std::size_t length, Deadline) {
  const iovec here{memory_.data(), length}, there{reinterpret_cast<void*>(aim.address), length};
  return ending_of(process_vm_readv(victim_.pid, &here, 1, &there, 1, 0), length);
}

Ending ShmStranger::send(Class type, std::size_t length, Deadline deadline) {
  // Stays in place if it does not end in time.
  auto* sent = new Sent;
  const auto post = endpoint_->send(*sent, {memory_.data(), length, nullptr}, peer_,
                                    static_cast<providers::MessageClass>(type));
  if (post.status != providers::PostStatus::posted) return {Ending::refused, post.fabric_code};
  while (!sent->ended && !deadline.passed()) endpoint_->poll();
  return sent->ended ? sent->ending : Ending{Ending::silent, 0};
}

void ShmStranger::scribble(std::uint64_t count) {
  const auto neighbour = must(shm::Neighbour::meet(
      victim_, must(core::process_by_number(victim_.pid)), core::random_u64()));
  shm::Slot& slot = neighbour->slot();
  std::copy_n(memory_.begin(), std::min(memory_.size(), slot.ring.size()), slot.ring.begin());
  slot.written.store(count);
  neighbour->announce();
}

}  // namespace weft::test
