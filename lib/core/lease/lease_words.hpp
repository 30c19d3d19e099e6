// The words that say which leases hold, for peers to read by RMA.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "base/process.hpp"
#include "base/sync.hpp"
#include "device/allocation.hpp"
#include "providers/endpoint.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

class LeaseWords;

/// One word. It holds a number of its lease's own until end(), and zero or another lease's number
/// from then on. Its place is used again once this is gone.
class Epoch {
 public:
  Epoch(std::shared_ptr<LeaseWords> words, std::size_t index, std::atomic<std::uint64_t>& word,
        std::uint64_t value);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  std::uint64_t value() const noexcept { return value_; }
  /// The keys that each rail needs to read it, by its index: `base` is where the word lies.
  std::vector<RailKey> keys() const;
  /// A reader of the word after this sees that the lease is over. A reader that still finds the
  /// number can't have seen what the caller writes to memory afterwards.
  void end() noexcept;

 private:
  const std::shared_ptr<LeaseWords> words_;
  const std::size_t index_;
  std::atomic<std::uint64_t>& word_;
  const std::uint64_t value_;
};

/// Pages of words, registered for reading with all rails of an engine, as they are needed. A peer
/// that may read one word may read them all: their numbers are random, and open nothing.
class LeaseWords : public std::enable_shared_from_this<LeaseWords> {
 public:
  static constexpr std::size_t words_per_page = 512;  // 4 KiB

  /// A rail to register with, unless it is closed at the time.
  struct Reader {
    std::uint32_t rail = 0;
    providers::Endpoint* endpoint = nullptr;
    std::function<bool()> closed = [] { return false; };
  };
  explicit LeaseWords(std::vector<Reader> readers) : readers_(std::move(readers)) {}

  /// From any thread; may block for registration.
  Result<std::unique_ptr<Epoch>> take();
  /// A rail was closed and opened again: the words have other keys with it.
  void rail_opened(std::uint32_t rail);
  /// Closes all registrations: the rails are going.
  void close();

 private:
  friend class Epoch;
  struct alignas(4096) Page {
    std::atomic<std::uint64_t> words[words_per_page];
  };
  struct Registered {
    Allocation memory;
    Page* page = nullptr;  // in it
    std::vector<std::unique_ptr<providers::Registration>> registrations;
    std::vector<RailKey> keys;  // of the page's start
  };
  Result<void> grow() WEFT_REQUIRES(mutex_);
  Result<void> register_with_rails(Registered& added) const;
  std::atomic<std::uint64_t>& word(std::size_t index) const WEFT_REQUIRES(mutex_);

  const std::vector<Reader> readers_;
  const std::uint64_t generation_ = fork_generation();
  mutable Mutex mutex_;
  std::vector<Registered> pages_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
