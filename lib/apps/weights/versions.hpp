// Which set of memory holds which step, and who reads it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <weft/weights.hpp>

#include "base/sync.hpp"

namespace weft::weights {

/// The sets of a subscriber: one is read, the other written; or one that is read or written.
/// Readers call from any thread; one thread brings new steps.
class Versions : public std::enable_shared_from_this<Versions> {
 public:
  /// `free`: called, without a lock, when a set has no reader any more.
  Versions(std::size_t sets, std::string state_file, std::function<void()> freed)
      : sets_(sets), state_file_(std::move(state_file)), freed_(std::move(freed)) {}

  // Readers.

  std::optional<std::uint64_t> step() const noexcept;
  Standing standing() const WEFT_EXCLUDES(mutex_);
  struct Pinned {
    std::uint64_t step;
    std::size_t set;
    std::shared_ptr<void> pin;
  };
  Result<Pinned> pin() WEFT_EXCLUDES(mutex_);
  Result<void> wait(std::uint64_t step, Deadline deadline) WEFT_EXCLUDES(mutex_);

  // The writer. A step goes from begin() to commit() or give_up().

  /// The set to write to, once nobody reads it. With one set, nobody begins to read it from now on.
  /// Fails if the state can't be kept in its file.
  Result<std::optional<std::size_t>> begin() WEFT_EXCLUDES(mutex_);
  /// All bytes are there; nothing can be read until it is known whether the others have them.
  void doubt() WEFT_EXCLUDES(mutex_);
  Result<void> commit(std::uint64_t step) WEFT_EXCLUDES(mutex_);
  /// The step is void. The one before is read again, if its memory was left alone.
  void give_up(std::string why) WEFT_EXCLUDES(mutex_);
  /// A step in doubt is overwritten: what could have been read before may be too old by now.
  void lose() WEFT_EXCLUDES(mutex_);

  void connected(bool to_leader) WEFT_EXCLUDES(mutex_);
  /// Ends all waits.
  void close() WEFT_EXCLUDES(mutex_);

 private:
  static constexpr std::uint64_t no_step = ~std::uint64_t{0};

  void show(StepState state) WEFT_REQUIRES(mutex_);
  void unpin(std::size_t set) WEFT_EXCLUDES(mutex_);
  Result<void> write_state(const std::string& text) const;

  const std::size_t sets_;
  const std::string state_file_;
  std::function<void()> freed_ WEFT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> visible_{no_step};
  mutable core::Mutex mutex_;
  core::Condition changed_;
  Standing standing_ WEFT_GUARDED_BY(mutex_);
  std::size_t current_ WEFT_GUARDED_BY(mutex_) = 1;  // the set that is read
  bool intact_ WEFT_GUARDED_BY(mutex_) = false;      // it holds standing_.step
  std::array<std::size_t, 2> pins_ WEFT_GUARDED_BY(mutex_) = {};
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::weights
