// Signals that have arrived from one peer, by id, and the expectations that wait for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#include <weft/message.hpp>

#include "peer/awaited.hpp"
#include "peer/id_set.hpp"

namespace weft::core {

/// What bytes that are kept cost besides themselves, about.
inline constexpr std::size_t kept_overhead = 64;

/// What is to be completed once no lock is held.
using Endings = std::vector<std::pair<std::shared_ptr<CompletionSlot>, std::optional<Error>>>;

/// Signals that no expectation waits for are kept, and their bytes counted. Those of an id that was
/// never asked for are kept for good. What shrink() may take is called an orphan: late signals, of
/// an id whose last expectation ended without them, and failures that nobody waits for. A note
/// stays of what it took, so that the next expectation of the id ends with the truth. The notes,
/// and the ids that were forgotten or given up, lie in sets of `most_ranges` ranges each.
///
/// Not safe for several threads.
class SignalCounters {
 public:
  /// 2 MiB for each set at most: four times that for a peer that fills all.
  static constexpr std::size_t most_ranges = 16384;

  explicit SignalCounters(std::string peer) : peer_(std::move(peer)) {}

  void arrived(std::uint64_t id, Blob bytes, Endings& endings);
  /// A signal with this id will never come: the oldest expectation for it ends with `error`, and if
  /// there is none the next one will.
  void failed(std::uint64_t id, const Error& error, Endings& endings);
  void await(const std::shared_ptr<ExpectState>& expectation, Endings& endings);
  /// False if it has ended already, or is about to.
  bool give_up(const ExpectState& expectation);
  /// Drops what is there of these ids, both ends included, and what comes until one is expected
  /// again. Ids that an expectation waits for are left as they are.
  void forget(std::uint64_t first, std::uint64_t last);
  /// Expectations that can't be served from what is here end with `error`.
  void close(const Error& error, Endings& endings);

  /// Makes a note of the oldest orphan. False if there is none.
  bool shrink();

  /// What is kept for ids that no expectation waits for.
  std::size_t bytes() const noexcept { return bytes_; }
  std::uint64_t ids() const noexcept { return ids_ + failed_.size(); }
  /// Signals, and failures, that no expectation will get.
  std::uint64_t dropped() const noexcept { return dropped_; }
  /// Those of them that there is no note of: an expectation may wait for one in vain.
  std::uint64_t vanished() const noexcept { return vanished_; }

 private:
  struct Payload {
    std::uint64_t number;  // of its signal
    Blob bytes;
  };
  struct Failure {
    Error error;
    std::uint64_t count;  // of equal ones in a row
  };
  using Orphans = std::list<std::uint64_t>;  // ids, the oldest orphans first
  /// Signals of one id. They are numbered as they arrive, and claimed in that order. Lists, since
  /// an empty deque takes half a kilobyte.
  struct Counter {
    std::uint64_t arrived = 0;
    std::uint64_t claimed = 0;
    std::list<Payload> payloads;
    std::list<Failure> failures;
    std::list<std::shared_ptr<ExpectState>> waiting;
    bool counted = false;  // in bytes_ and ids_
    std::optional<Orphans::iterator> orphan = {};
    bool idle() const {
      return arrived == claimed && waiting.empty() && failures.empty() && payloads.empty();
    }
  };
  using Counters = std::unordered_map<std::uint64_t, Counter>;

  static std::size_t cost(const Failure& failure);
  void account(Counters::iterator entry);
  void claim(Counter& counter, ExpectState& expectation);
  void serve(Counters::iterator entry, Endings& endings);
  std::optional<Error> why_not(Counters::iterator entry);
  void ended_short(const ExpectState& expectation);
  std::uint64_t drop_signals(Counter& counter);
  std::uint64_t drop_failures(Counter& counter);
  std::vector<std::uint64_t> known_between(std::uint64_t first, std::uint64_t last) const;

  const std::string peer_;
  Counters counters_;
  Orphans orphans_;
  IdSet forgotten_{most_ranges};  // none of them is waited for
  IdSet given_up_{most_ranges};   // likewise
  IdSet failed_{most_ranges};     // a failure of each was an orphan
  IdSet lost_{most_ranges};       // late signals of each were orphans
  std::size_t bytes_ = 0;
  std::uint64_t ids_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t vanished_ = 0;
  std::optional<Error> closed_;
};

}  // namespace weft::core
