// One engine of a node from its opening to its close, with everything that goes on in it. Looks at
// all that the engine may not do, and reports it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

#include "arena.hpp"
#include "content.hpp"
#include "layout.hpp"
#include "line.hpp"
#include "stalls.hpp"
#include "tasks.hpp"

namespace weft::chaos {

class Life {
 public:
  /// `order`: its configuration and faults, and its arena. Throws std::runtime_error.
  Life(const Json& order, Line& director, Stalls& stalls);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// What the director hears of a new engine.
  Json introduction() const;
  /// Carries out an order; what may wait is answered later.
  void carry_out(const Json& order);
  /// Ends everything. An error if the engine could not be closed in time.
  Result<void> close(Deadline deadline);

 private:
  /// A grant of our own. What its memory holds changes under the lock.
  struct Granted {
    explicit Granted(Grant&& grant) : handle(std::move(grant)) {}
    Grant handle;
    std::mutex mutex;
    bool refilled = false;
  };
  struct Running {
    std::uint64_t id = 0;
    std::vector<Stretch> expected;  // of reads: what must be there when it is done
    Clock::time_point deadline;
    Nanoseconds stalls_before{};
    bool wants_event = false;
    std::atomic<int> ends{0};
    std::atomic<State> end{State::active};
    std::atomic<bool> told{false};      // its end, with all that was to be looked at then
    std::atomic<std::int64_t> late{0};  // nanoseconds, of the end
    // Under the mutex of the life.
    std::optional<Transfer> handle;
    int events = 0;
    bool told_quiescent = false;
    bool told_overdue = false;
  };
  struct Awaited {
    std::uint64_t id = 0;
    std::string peer;
    std::shared_ptr<Granted> grant;
    std::vector<Stretch> checks;
    std::atomic<bool> over{false};
    std::atomic<bool> came{false};
    Clock::time_point over_at{};
    std::optional<Expectation> handle;
  };

  void grant(const Json& order);
  void connect(const Json& order);
  void import(const Json& order);
  void expect(const Json& order);
  void give_up(const Json& order);
  void transfer(const Json& order);
  void cancel(const Json& order);
  void revoke(const Json& order);
  void fence(const Json& order);
  void end_grant(const Json& order, const std::function<Result<Revoked>(Grant&, Deadline)>& end);
  void release(const Json& order);
  Memory memory_of(std::size_t segment) const;
  void add(const Json& order);

  void answer(const Json& order, Json words);
  /// Starts a call that has to come back by the order's deadline.
  void run_timed(const Json& order, std::function<Json(Deadline)> call);
  void violation(const std::string& kind, std::uint64_t transfer, const std::string& text);
  void refill(const std::vector<Stretch>& stretches);
  void ended(Running& running, const Ended& end);
  void signalled(Awaited& awaited, const Error* error);
  Nanoseconds slack(const Running& running) const;

  void watch();
  void look_at_events();
  void look_at(const Event& event);
  void look_at(Running& running);
  void look_for_echoes();
  void look_at_peers();
  void check_ends();

  Line& director_;
  Stalls& stalls_;
  Arena arena_;
  std::optional<Engine> engine_;
  std::vector<std::shared_ptr<Segment>> segments_;
  std::map<std::uint64_t, std::shared_ptr<Granted>> grants_;
  std::mutex mutex_;  // of what follows
  std::map<std::uint64_t, Remote> remotes_;
  std::map<std::uint64_t, std::shared_ptr<Running>> running_, over_;
  std::map<std::uint64_t, std::shared_ptr<Awaited>> awaited_;
  Json peers_told_ = Json::array();
  std::condition_variable stop_;
  bool stopping_ = false;
  Tasks tasks_;
  std::thread watch_;
};

}  // namespace weft::chaos
