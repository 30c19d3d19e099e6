// Another shm endpoint of this machine, as seen from one of ours.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "base/process.hpp"
#include "providers/endpoint.hpp"
#include "providers/shm/mappings.hpp"
#include "providers/shm/region.hpp"
#include "providers/shm/shared_copy.hpp"

namespace weft::providers::shm {

/// An endpoint's address. It can only mean the process that it names: a peer that opens the region
/// finds this nonce in it, or another one.
struct Address {
  std::uint64_t nonce = 0;
  std::int32_t pid = 0;
  std::int32_t region = -1;  // descriptors, in that process
  std::int32_t bell = -1;
  std::int32_t reserved = 0;
};

/// What an endpoint shows to its peers of the host: these, and the files of its entries by their
/// keys, which are larger. `owner` is its nonce.
constexpr std::uint64_t region_number = 1, bell_number = 2;
static_assert(bell_number < entry_count);

/// 0, or an errno with words of our own.
struct Outcome {
  int error = 0;
  const char* text = "";
  bool mapped = false;  // copied by this process itself, and not by the kernel
};

class Neighbour {
 public:
  /// Opens the region and takes a slot in it. Fails if the process is not there or not ours to
  /// look into.
  static Result<std::shared_ptr<Neighbour>> meet(const Address& address,
                                                 std::shared_ptr<const core::HostProcess> process,
                                                 std::uint64_t own_nonce);
  /// Gives the slot back.
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  std::uint64_t nonce() const noexcept { return address_.nonce; }
  Slot& slot() const noexcept { return *slot_; }
  const std::shared_ptr<const core::HostProcess>& process() const noexcept { return process_; }
  bool gone() const noexcept { return process_->ended(); }
  /// Whether its endpoint takes nothing any more.
  bool closed() const noexcept { return head_->closed.load(std::memory_order_acquire) != 0; }

  enum class Means { all, mapping };
  /// Copies between this process's memory and a registration of the neighbour's, here and now.
  /// By the thread that has taken that copier; nothing if the means are not enough. Through a
  /// mapping, the first hundred or so of each copier may succeed after its process has ended: the
  /// control connection tells sooner. `shared`: by which others may
  /// take part in it; null: none.
  std::optional<Outcome> copy(std::size_t copier, bool writes, const Local& local,
                              const Target& target, Means means, SharedCopy* shared) noexcept;
  /// Lets go of the view that the copier has at hand. By the thread that has taken the copier.
  void forget_view(std::size_t copier) noexcept { copiers_[copier].view.reset(); }
  /// Whether copies by the key are made through a mapping, or why they are not.
  Result<void> check_mapped(std::uint64_t key) const;
  /// It was met again, and what it showed before is asked for in another way.
  void ask_by(std::shared_ptr<const core::HostProcess> process) {
    mappings_->ask_by(std::move(process));
  }
  /// Whether copies by the key can be made: by the kernel, or through a mapping, which it makes.
  Result<void> reach(std::uint64_t key) const;
  /// Whether its mappings are due to be tidied, and to do so (Mappings). By the owning thread.
  bool has_news() const noexcept { return mappings_->news(); }
  bool tidy(Clock::time_point now) { return mappings_->tidy(now); }
  /// Tells it that something new is in our slot.
  void announce() const noexcept;
  /// Wakes it if it sleeps.
  void ring() const noexcept { shm::ring(*head_, bell_); }

 private:
  Neighbour(const Address& address, std::shared_ptr<const core::HostProcess> process)
      : address_(address), process_(std::move(process)) {}
  Result<void> claim_slot(const Descriptor& region, std::uint64_t own_nonce);
  /// The view of this neighbour that one of the endpoint's copiers has at hand.
  struct alignas(cache_line) Copier {
    std::uint64_t key = 0;  // of the view
    std::shared_ptr<const View> view;
    std::size_t left_until_look = 0;  // at the neighbour's process
    bool ended = false;               // seen at a look
  };
  const Entry& entry_of(std::uint64_t key) const noexcept;
  Outcome refusal(bool writes, const Local& local, const Target& target) const noexcept;
  const View* view_for(Copier& copier, bool writes, const Local& local, const Target& target);
  bool gone_by_now(Copier& copier, std::size_t bytes) const noexcept;

  static Outcome copy_through(const View& view, bool writes, const Local& local,
                              const Target& target, SharedCopy* shared) noexcept;
  Outcome copy_by_kernel(bool writes, const Local& local, const Target& target) const noexcept;

  const Address address_;
  const std::shared_ptr<const core::HostProcess> process_;
  Descriptor bell_;
  Mapped<Head> head_;
  Mapped<Slot> slot_;
  std::unique_ptr<Mappings> mappings_;
  std::size_t index_ = slot_count;  // of the slot
  std::array<Copier, copier_count> copiers_;
};

}  // namespace weft::providers::shm
