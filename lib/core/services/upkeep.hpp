// What has to happen in time although nothing comes, and although a progress thread may be stuck in
// the provider.
#pragma once

#include <thread>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "rail/workers.hpp"
#include "services/credits.hpp"
#include "services/grants.hpp"
#include "services/messages.hpp"
#include "services/peers.hpp"
#include "services/reopening.hpp"

namespace weft::core {

/// Ends leases whose time is over, overdue transfers and waits, and waits for dead peers; reopens
/// rails that have fallen silent; gives back what idle peers have promised; learns the ends of
/// copies that nobody looks at. On a thread of its own, which may call the application: a callback
/// that blocks holds up nothing but this. start() and stop() by the threads that open and close the
/// engine.
class Upkeep {
 public:
  /// How late it may be. No harm for leases: their holders stop by their own clocks, and their
  /// memory is not free before it is revoked.
  static constexpr Nanoseconds period = std::chrono::milliseconds(100);

  Upkeep(Grants& grants, Messages& messages, Workers& workers, Peers& peers, Reopening& reopening,
         Credits& credits)
      : grants_(grants),
        messages_(messages),
        workers_(workers),
        peers_(peers),
        reopening_(reopening),
        credits_(credits) {}
  ~Upkeep() { stop(); }
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  Result<void> start();
  /// Waits for the round that is under way. Before what it looks after goes.
  void stop();

 private:
  void loop();
  void round(Clock::time_point now);

  Grants& grants_;
  Messages& messages_;
  Workers& workers_;
  Peers& peers_;
  Reopening& reopening_;
  Credits& credits_;
  Mutex mutex_;
  Condition stops_;
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weft::core
