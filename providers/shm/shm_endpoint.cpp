#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/sync.hpp"
#include "providers/sanitizer.hpp"
#include "providers/shm/copiers.hpp"
#include "providers/shm/mail.hpp"
#include "providers/shm/neighbour.hpp"
#include "providers/shm/region.hpp"
#include "providers/shm/registrations.hpp"
#include "providers/shm/shared_copy.hpp"
#include "providers/shm/shm.hpp"

namespace weft::providers::shm {
namespace {

// A peer may close thousands of entries, one by one.
constexpr auto tidying_interval = std::chrono::milliseconds(100);

class ShmEndpoint final : public Endpoint {
 public:
  ~ShmEndpoint() override;
  Result<void> open();

  const Capability& capability() const noexcept override { return record_; }
  const Blob& address() const noexcept override { return address_; }

  Result<FabricAddress> insert(Bytes address) override { return insert_of(address, nullptr); }
  Result<FabricAddress> insert_of(Bytes address,
                                  const std::shared_ptr<const core::HostProcess>& process) override;
  void remove(FabricAddress peer) override;
  Result<std::unique_ptr<Registration>> register_memory(const Extent& memory,
                                                        Access access) override {
    return registrations_->add(memory, access);
  }
  Result<void> check_mapped(FabricAddress peer, std::uint64_t key) override;
  Result<void> reach(FabricAddress peer, std::uint64_t key) override;
  Result<Descriptor> show(const core::DescriptorName& name) const override;
  bool copy_inline(bool writes, const Local& local, const Target& target, CopyBy by) override;

  Post write(Posted& posted, const Local& local, const Target& target) override {
    return copy(true, posted, local, target);
  }
  Post read(Posted& posted, const Local& local, const Target& target) override {
    return copy(false, posted, local, target);
  }
  Post send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) override;
  Post receive(Posted& posted, const Local& local, MessageClass type) override;
  bool take_back(Posted& posted, MessageClass type) override {
    return receives_.take_back(type, posted);
  }
  std::size_t poll() override;
  int wait_fd() const noexcept override { return bell_.get(); }
  bool may_sleep() override;

 private:
  struct Met {
    std::shared_ptr<Neighbour> neighbour;
    std::size_t users = 0;  // an address may be inserted several times
  };
  Result<void> open_bell(Address& address);
  Post copy(bool writes, Posted& posted, const Local& local, const Target& target);
  std::shared_ptr<Neighbour> neighbour(FabricAddress peer) const;
  Neighbour* neighbour(FabricAddress peer, Copiers::Copier& copier) const;
  void forget_the_removed();
  void note_closings(const std::shared_ptr<Neighbour>& neighbour);
  bool gone(const Claim& claim) const;
  bool wake_up();
  void collect(bool slept);
  void tell_of_closing(const Claim& claim) const;
  void tidy_mappings();
  void look_into(std::size_t slot);
  void free_slots_of_the_gone();
  void free_slot(std::size_t slot);
  std::size_t tell();

  const Capability record_ = shm::capability();
  const std::uint64_t pid_namespace_ = own_pid_namespace();
  Blob address_;
  Descriptor region_, bell_, ringer_;  // the bell's ends: to sleep on, and for others to ring
  Mapped<Head> head_;
  std::unique_ptr<Registrations> registrations_;

  // By any thread.
  mutable core::Mutex mutex_;
  std::map<FabricAddress, Met> met_ WEFT_GUARDED_BY(mutex_);
  // Removed, and their slots not yet looked at.
  std::vector<std::shared_ptr<Neighbour>> leaving_ WEFT_GUARDED_BY(mutex_);
  // By the nonces of removed neighbours that may still have a slot here.
  std::map<FabricAddress, std::shared_ptr<const core::HostProcess>> departed_
      WEFT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> removals_{0};  // of neighbours, so far
  Copiers copiers_;
  SharedCopy shared_copy_;

  // By the owning thread.
  std::map<FabricAddress, Outbound> outbound_;
  std::vector<Outbound*> sending_;          // those that are not idle
  std::map<std::size_t, Inbound> inbound_;  // by slot
  std::vector<std::size_t> waiting_;        // slots whose message waits for a buffer
  Receives receives_;
  std::vector<Ended> ended_, telling_;
  bool asleep_ = false, attends_ = false;
  std::uint64_t seen_removals_ = 0;
  Copiers::Set to_forget_;  // those that may have a neighbour at hand that was removed
  struct Untidy {           // entries of the neighbour's were closed
    std::shared_ptr<Neighbour> neighbour;
    Copiers::Set views;  // those that may have a view of them at hand
  };
  std::vector<Untidy> untidy_;
  Clock::time_point next_tidying_ = {};
};

Result<void> ShmEndpoint::open() {
  auto region = create_region();
  if (!region) return fail(std::move(region.error()));
  region_ = std::move(*region);
  auto head = map_head(region_);
  if (!head) return fail(std::move(head.error()));
  head_ = std::move(*head);
  head_->nonce = core::random_u64();
  registrations_ = std::make_unique<Registrations>(
      *head_, [this](const Claim& claim) { return gone(claim); },
      [this](const Claim& claim) { tell_of_closing(claim); });
  Address address{head_->nonce, getpid(), region_.get(), -1, 0};
  return open_bell(address).map([&] {
    address_.resize(sizeof address);
    std::memcpy(address_.data(), &address, sizeof address);
  });
}

Result<void> ShmEndpoint::open_bell(Address& address) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail(system_error("pipe2"));
  bell_ = Descriptor(ends[0]);
  ringer_ = Descriptor(ends[1]);
  address.bell = ringer_.get();
  return {};
}

ShmEndpoint::~ShmEndpoint() {
  if (head_) head_->closed.store(1);  // it is not there if open() failed
}

/// Without a process it is the one of the address's number.
Result<FabricAddress> ShmEndpoint::insert_of(
    Bytes bytes, const std::shared_ptr<const core::HostProcess>& process) {
  Address address;
  if (bytes.size() != sizeof address)
    return fail(Code::invalid_argument, "that is not the address of an shm rail");
  std::memcpy(&address, bytes.data(), sizeof address);
  const FabricAddress key = address.nonce;
  const core::Lock lock(mutex_);
  if (const auto known = met_.find(key); known != met_.end()) {
    ++known->second.users;
    if (process != nullptr) known->second.neighbour->ask_by(process);
    return key;
  }
  using Process = std::shared_ptr<const core::HostProcess>;
  auto owner = process != nullptr ? Result<Process>(process) : core::process_by_number(address.pid);
  if (!owner) return fail(std::move(owner.error()));
  auto neighbour = Neighbour::meet(address, std::move(*owner), head_->nonce);
  if (!neighbour) return fail(std::move(neighbour.error()));
  met_.emplace(key, Met{std::move(*neighbour), 1});
  return key;
}

void ShmEndpoint::remove(FabricAddress peer) {
  const core::Lock lock(mutex_);
  const auto entry = met_.find(peer);
  if (entry == met_.end() || --entry->second.users > 0) return;
  departed_.insert_or_assign(peer, entry->second.neighbour->process());
  leaving_.push_back(std::move(entry->second.neighbour));
  met_.erase(entry);
  ++removals_;
}

std::shared_ptr<Neighbour> ShmEndpoint::neighbour(FabricAddress peer) const {
  const core::Lock lock(mutex_);
  const auto entry = met_.find(peer);
  return entry != met_.end() ? entry->second.neighbour : nullptr;
}

/// Whether the process that has a slot has ended.
bool ShmEndpoint::gone(const Claim& claim) const {
  // An address is known by the nonce of its endpoint.
  const std::uint64_t nonce = claim.owner.load();
  if (const auto known = neighbour(nonce)) return known->gone();
  {
    const core::Lock lock(mutex_);
    if (const auto known = departed_.find(nonce); known != departed_.end())
      return known->second->ended();
  }
  const auto pid = static_cast<std::int32_t>(claim.pid.load());
  return pid > 0 && claim.pid_namespace == pid_namespace_ && core::has_ended(pid);
}

Result<void> ShmEndpoint::check_mapped(FabricAddress peer, std::uint64_t key) {
  const auto known = neighbour(peer);
  if (!known) return fail(Code::unavailable, "the peer is not known");
  return known->check_mapped(key);
}

Result<void> ShmEndpoint::reach(FabricAddress peer, std::uint64_t key) {
  const auto known = neighbour(peer);
  if (!known) return fail(Code::unavailable, "the peer is not known");
  return known->reach(key);
}

Result<Descriptor> ShmEndpoint::show(const core::DescriptorName& name) const {
  if (name.owner != head_->nonce)
    return fail(Code::not_found, "the descriptor is of another endpoint");
  const auto copy_of = [](int descriptor) -> Result<Descriptor> {
    Descriptor copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) return fail(system_error("fcntl of a descriptor for a peer"));
    return copy;
  };
  if (name.number == region_number) return copy_of(region_.get());
  if (name.number == bell_number) return copy_of(ringer_.get());
  return registrations_->file_of(name.number)
      .and_then(copy_of)
      .and_then([&](Descriptor copy) -> Result<Descriptor> {
        // While the entry is open its descriptor is not used again: the copy is of the right file.
        if (auto still = registrations_->file_of(name.number); !still)
          return fail(std::move(still.error()));
        return copy;
      });
}

/// The one that the copier copied with last is at hand.
Neighbour* ShmEndpoint::neighbour(FabricAddress peer, Copiers::Copier& copier) const {
  const std::uint64_t removals = removals_.load(std::memory_order_acquire);
  const bool at_hand = copier.neighbour != nullptr && copier.neighbour->nonce() == peer;
  if (!at_hand || copier.removals != removals) {
    copier.removals = removals;
    copier.neighbour = neighbour(peer);
  }
  return copier.neighbour.get();
}

bool ShmEndpoint::copy_inline(bool writes, const Local& local, const Target& target, CopyBy by) {
  const Copiers::Turn turn = copiers_.take();
  Neighbour* const peer = turn ? neighbour(target.peer, *turn) : nullptr;
  if (peer == nullptr) return false;
  handing_over(&every_endpoint);
  SharedCopy* const shared = by == CopyBy::callers_and_pollers ? &shared_copy_ : nullptr;
  if (shared != nullptr && shared->wants_help(local.length)) ring(*head_, ringer_);
  const auto means = by == CopyBy::kernels ? Neighbour::Means::all : Neighbour::Means::mapping;
  const auto outcome = peer->copy(turn.number(), writes, local, target, means, shared);
  return outcome && outcome->error == 0;
}

/// From any thread.
void ShmEndpoint::tell_of_closing(const Claim& claim) const {
  if (const auto known = neighbour(claim.owner.load())) known->announce();
}

Post ShmEndpoint::copy(bool writes, Posted& posted, const Local& local, const Target& target) {
  const Copiers::Turn turn = copiers_.take();
  if (!turn) return {PostStatus::again, 0};  // by threads of the application's, for a moment
  Neighbour* const peer = neighbour(target.peer, *turn);
  if (peer == nullptr) return {PostStatus::failed, EHOSTUNREACH};
  handing_over(&every_endpoint);
  const auto outcome =
      peer->copy(turn.number(), writes, local, target, Neighbour::Means::all, nullptr);
  ended_.push_back({&posted, local.length, *outcome});
  return {};
}

Post ShmEndpoint::send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) {
  auto entry = outbound_.find(peer);
  if (entry == outbound_.end()) {
    auto to = neighbour(peer);
    if (!to) return {PostStatus::failed, EHOSTUNREACH};
    entry = outbound_.try_emplace(peer, std::move(to)).first;
  }
  Outbound& outbound = entry->second;
  handing_over(&every_endpoint);
  if (outbound.given_up()) return {PostStatus::failed, ECONNRESET};
  if (!outbound.send(posted, local, type)) return {PostStatus::again, 0};
  if (std::find(sending_.begin(), sending_.end(), &outbound) == sending_.end())
    sending_.push_back(&outbound);
  // A small message is sent by this; the next poll reports messages that were taken already.
  outbound.pump(ended_, false);
  return {};
}

Post ShmEndpoint::receive(Posted& posted, const Local& local, MessageClass type) {
  receives_.post(type, {&posted, local});
  return {};
}

std::size_t ShmEndpoint::poll() {
  const bool slept = wake_up();
  if (!std::exchange(attends_, true)) shared_copy_.attend(true);
  const bool helped = shared_copy_.help();
  const std::uint64_t removals = removals_;
  if (std::exchange(seen_removals_, removals) != removals) {
    to_forget_.set();
    free_slots_of_the_gone();
  }
  if (to_forget_.any()) forget_the_removed();
  collect(slept);
  if (!untidy_.empty()) tidy_mappings();
  return tell() + (helped ? 1 : 0);
}

bool ShmEndpoint::wake_up() {
  if (!std::exchange(asleep_, false)) return false;
  head_->asleep.store(0);
  // All of a pipe's worth: peers may have rung often.
  std::array<char, 4096> rings;
  for (int look = 0; look < 16 && ::read(bell_.get(), rings.data(), rings.size()) > 0; ++look) {
  }
  return true;
}

void ShmEndpoint::collect(bool slept) {
  for (Outbound* outbound : sending_) outbound->pump(ended_, slept);
  std::erase_if(sending_, [](const Outbound* outbound) { return outbound->idle(); });
  for (const std::size_t slot : std::exchange(waiting_, {})) look_into(slot);
  for (std::size_t word = 0; word < head_->pending.size(); ++word) {
    if (head_->pending[word].load(std::memory_order_relaxed) == 0) continue;
    for (std::uint64_t bits = head_->pending[word].exchange(0); bits != 0; bits &= bits - 1)
      look_into(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
}

void ShmEndpoint::tidy_mappings() {
  const auto now = Clock::now();
  if (now < next_tidying_) return;
  next_tidying_ = now + tidying_interval;
  std::erase_if(untidy_, [&](Untidy& each) {
    copiers_.visit(each.views,
                   [&](const Copiers::Turn& turn) { each.neighbour->forget_view(turn.number()); });
    return each.neighbour->tidy(now) && each.views.none();
  });
}

/// A closed entry does not come back: each copier has to let go of it once.
void ShmEndpoint::note_closings(const std::shared_ptr<Neighbour>& neighbour) {
  auto known = std::find_if(untidy_.begin(), untidy_.end(),
                            [&](const Untidy& each) { return each.neighbour == neighbour; });
  if (known == untidy_.end()) known = untidy_.insert(known, {neighbour, {}});
  known->views.set();
}

void ShmEndpoint::look_into(std::size_t slot) {
  const std::uint64_t owner = head_->claims[slot].owner.load();
  auto entry = inbound_.find(slot);
  if (entry == inbound_.end()) {
    if (owner == 0) return;
    if (owner == left) return free_slot(slot);
    auto mapped = map_slot(region_, slot);
    // Without memory for the mapping it is tried again by the next poll.
    if (!mapped) return waiting_.push_back(slot);
    entry = inbound_.try_emplace(slot, std::move(*mapped), owner).first;
  }
  Inbound& inbound = entry->second;
  const auto from = neighbour(inbound.sender());
  if (inbound.take(receives_, ended_) && from) from->ring();
  if (from && from->has_news()) note_closings(from);
  if (owner == left) return free_slot(slot);
  if (inbound.waiting() && std::find(waiting_.begin(), waiting_.end(), slot) == waiting_.end())
    waiting_.push_back(slot);
}

/// Frees the slots of peers that ended without doing so, and lets go of removed neighbours.
void ShmEndpoint::free_slots_of_the_gone() {
  std::size_t left_now = 0;
  {
    const core::Lock lock(mutex_);
    left_now = leaving_.size();
    std::erase_if(untidy_, [&](const Untidy& each) WEFT_REQUIRES(mutex_) {
      return std::find(leaving_.begin(), leaving_.end(), each.neighbour) != leaving_.end();
    });
    for (auto entry = outbound_.begin(); entry != outbound_.end();) {
      if (met_.contains(entry->first)) {
        ++entry;
        continue;
      }
      std::erase(sending_, &entry->second);
      entry->second.give_up({ECONNRESET, "the peer was removed"}, ended_);
      entry = outbound_.erase(entry);
    }
  }
  std::set<std::uint64_t> owners;
  for (std::size_t slot = 0; slot < std::min<std::size_t>(head_->claimed, slot_count); ++slot) {
    const Claim& claim = head_->claims[slot];
    const std::uint64_t owner = claim.owner.load();
    if (owner == left || (owner != 0 && gone(claim)))
      free_slot(slot);
    else
      owners.insert(owner);
  }
  const core::Lock lock(mutex_);
  std::erase_if(departed_, [&](const auto& each) { return !owners.contains(each.first); });
  leaving_.erase(leaving_.begin(), leaving_.begin() + static_cast<std::ptrdiff_t>(left_now));
}

/// Once is enough: later copies do not find them any more.
void ShmEndpoint::forget_the_removed() {
  copiers_.visit(to_forget_, [&](const Copiers::Turn& turn) {
    if ((*turn).removals != removals_) (*turn).neighbour.reset();
  });
}

void ShmEndpoint::free_slot(std::size_t slot) {
  if (const auto entry = inbound_.find(slot); entry != inbound_.end()) {
    entry->second.reset(receives_);
    inbound_.erase(entry);
  } else if (auto mapped = map_slot(region_, slot)) {
    Inbound(std::move(*mapped), 0).reset(receives_);
  } else {
    return waiting_.push_back(slot);  // tried again by the next poll
  }
  std::erase(waiting_, slot);
  Claim& claim = head_->claims[slot];
  claim.pid.store(0);
  for (Copying& copying : claim.copying) copying.key.store(0);
  claim.owner.store(0);
}

/// Handlers may post, so what ended meanwhile is told by the next poll.
std::size_t ShmEndpoint::tell() {
  if (ended_.empty()) return 0;
  handed_over(&every_endpoint);
  std::swap(ended_, telling_);
  for (const Ended& each : telling_) {
    Completion completion;
    completion.ok = each.outcome.error == 0;
    completion.length = each.length;
    completion.fabric_code = each.outcome.error;
    completion.text = each.outcome.text;
    completion.too_long = each.outcome.error == EMSGSIZE;
    completion.mapped = each.outcome.mapped;
    each.posted->handler->completed(*each.posted, completion);
  }
  const std::size_t count = telling_.size();
  telling_.clear();
  return count;
}

bool ShmEndpoint::may_sleep() {
  asleep_ = true;
  head_->asleep.store(1, std::memory_order_seq_cst);
  // In this order: a sender that sees nobody attend finds the sleeper to wake.
  if (std::exchange(attends_, false)) shared_copy_.attend(false);
  const bool news =
      !ended_.empty() || removals_ != seen_removals_ ||
      std::any_of(head_->pending.begin(), head_->pending.end(),
                  [](const auto& word) { return word.load(std::memory_order_seq_cst) != 0; }) ||
      std::any_of(sending_.begin(), sending_.end(),
                  [](const Outbound* outbound) { return outbound->ready(); });
  return !news;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> open_endpoint() {
  auto endpoint = std::make_unique<ShmEndpoint>();
  if (auto opened = endpoint->open(); !opened) return fail(std::move(opened.error()));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace weft::providers::shm
