// Decides which of the transfers that wait to go one way to one peer is next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

#include "base/priorities.hpp"

namespace weft::core {

class TransferState;

/// A turn is a few chunks of one transfer. What is promised:
///
/// 1. Latency goes before normal before bulk; but a lower class that waits has one part in `share`
///    of what is sent, at least. What is sent counts by its bytes, and an operation as `least_cost`
///    at least. So none starves.
/// 2. Within a class the earliest deadline goes first. Those of one deadline take turns.
/// 3. Of the turns of a class one in `patience` goes to the transfer that has waited longest since
///    its last: among n transfers each has a turn in n times `patience` of the class.
///
/// A turn ahead of a more urgent transfer, by the second half of 1 or by 3, is of one chunk. Peers
/// take turns too, but each has a window of its own: see RailScheduler.
///
/// Taking a turn costs the logarithm of the number of transfers, and no allocation.
class FairQueue {
 public:
  static constexpr std::int64_t share = 16;
  static constexpr std::int64_t least_cost = 16 * 1024;
  static constexpr unsigned patience = 4;

 private:
  struct Waiting {
    std::shared_ptr<TransferState> transfer;
    Clock::time_point deadline;
    std::uint64_t since = 0;  // the number of the turn after which it began to wait
  };
  using List = std::list<Waiting>;
  struct Earlier {
    bool operator()(List::iterator a, List::iterator b) const {
      return a->deadline != b->deadline ? a->deadline < b->deadline : a->since < b->since;
    }
  };
  using ByDeadline = std::set<List::iterator, Earlier>;

 public:
  /// What an operation of so many bytes counts.
  static constexpr std::int64_t cost_of(std::uint64_t bytes) {
    return std::max(static_cast<std::int64_t>(bytes), least_cost);
  }

  /// A transfer that has its turn: it is not among the waiting meanwhile.
  class Turn {
   public:
    TransferState& transfer() const noexcept { return *entry_.front().transfer; }
    /// How many chunks it may be, where there is room for so many.
    std::size_t chunks(std::size_t room) const noexcept { return before_its_time_ ? 1 : room; }
    /// An operation of it was sent, or several.
    void sent(std::int64_t cost) noexcept { cost_ += cost; }

   private:
    friend class FairQueue;
    List entry_;
    ByDeadline::node_type place_;
    bool before_its_time_ = false;  // a more urgent transfer waits
    bool for_its_share_ = false;    // that one is of another class
    bool spare_ = false;            // no other class could have had it
    std::int64_t cost_ = 0;
  };

  FairQueue() = default;
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  bool empty() const noexcept;
  /// Whether one of class latency waits.
  bool urgent() const noexcept { return !of(Priority::latency).waiting.empty(); }
  /// A transfer may wait several times.
  void add(std::shared_ptr<TransferState> transfer);
  /// There must be one.
  Turn next();
  /// There must be an urgent one. What it sends does not count for the shares.
  Turn next_urgent();
  /// Ends a turn; the transfer waits for another one if it has more to send.
  void end(Turn&& turn, bool more);
  void erase(const TransferState& transfer);
  /// Lets go of transfers that have ended, as far as they are next by their deadlines; now and then
  /// add() looks for all of them.
  void drop_ended();

 private:
  struct Class {
    List waiting;  // the one that has waited longest first
    ByDeadline by_deadline;
    std::int64_t owed = 0;  // share of what others have sent meanwhile
    unsigned in_order = 0;  // its turns since one went to the first of `waiting`

    void erase(List::iterator which);
    Turn take();
  };

  Class& of(Priority priority) { return classes_[index_of(priority)]; }
  const Class& of(Priority priority) const { return classes_[index_of(priority)]; }
  void sweep();

  static constexpr std::size_t most_spare = 64;

  std::array<Class, priorities> classes_;  // by index_of()
  std::vector<Turn> spare_;                // in use by no transfer: their memory is used again
  std::uint64_t turn_ = 0;
  std::size_t sweep_at_ = 64;
};

}  // namespace weft::core
