// What a rank writes to others in each round: a publisher its shards, a subscriber what it passes
// on.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>
#include <weft/weights.hpp>

#include "base/sync.hpp"
#include "weights/member.hpp"

namespace weft::weights {

/// Rounds come one after the other. To import a grant takes its time, so a thread serves that is
/// not the member's.
class Sender {
 public:
  Sender(Member& member, const LeaderLink& leader) : member_(member), leader_(leader) {}

  // What has happened. On any thread.

  /// Takes the sends of the rounds that follow.
  void plan(const std::vector<Send>& sends, bool verify) WEFT_EXCLUDES(mutex_);
  /// `from`: the memory that is sent.
  void begin(const Round& round, const Segments& from, Deadline deadline) WEFT_EXCLUDES(mutex_);
  /// A subscriber may be written to, in this round or in one that has not begun here.
  void granted(const Note& note) WEFT_EXCLUDES(mutex_);
  /// All of this stage is in the memory that is sent.
  void arrived(Stage stage) WEFT_EXCLUDES(mutex_);
  /// The round is over: nothing more is written. `cancel`: what is under way is of no use.
  void end(bool cancel) WEFT_EXCLUDES(mutex_);

  // The work.

  void open() WEFT_EXCLUDES(mutex_);
  /// Writes what may be written, until the deadline, or close(): then it returns false.
  bool serve(Deadline deadline) WEFT_EXCLUDES(mutex_);
  void close() WEFT_EXCLUDES(mutex_);

  /// Of the last round.
  std::uint64_t bytes() const WEFT_EXCLUDES(mutex_);
  /// Whether nothing reads the memory of earlier rounds any more, be it at once or by the deadline.
  bool quiescent() WEFT_EXCLUDES(mutex_);
  bool wait_quiescent(Deadline deadline) WEFT_EXCLUDES(mutex_);

 private:
  /// One write of every round.
  struct Write {
    std::uint32_t to = 0;
    Stage stage = 0;
    bool passed_on = false;
    std::uint32_t src_segment = 0, dst_segment = 0;
    std::vector<Pair> pairs = {};
  };
  struct Planned {
    std::vector<Write> writes;  // ordered by stage
    bool verify = false;
  };
  using PlannedPtr = std::shared_ptr<const Planned>;
  struct Granted {
    std::uint32_t rank;
    Round round;
    std::shared_ptr<const std::vector<Blob>> grants;
  };
  struct Running {
    Round id;
    Segments from;
    Deadline deadline;
    PlannedPtr planned;
    std::vector<bool> begun;  // by write
    std::set<Stage> arrived = {};
  };
  /// A write that may begin.
  struct Due {
    Round round;
    std::shared_ptr<Segment> from;  // null: there is none of that number
    Deadline deadline;
    PlannedPtr planned;
    const Write* write;
    std::shared_ptr<const std::vector<Blob>> grants;
  };

  std::optional<Due> next(Deadline deadline) WEFT_EXCLUDES(mutex_);
  std::optional<Due> find_due() WEFT_REQUIRES(mutex_);
  Result<void> write(const Due& due) WEFT_EXCLUDES(mutex_);
  Result<Remote> remote_for(const Due& due) WEFT_EXCLUDES(mutex_);
  bool runs(const Round& round) const WEFT_EXCLUDES(mutex_);
  void report(const Round& round, const std::string& why);
  void tell_leader(const Round& round, const std::string& why);

  Member& member_;
  const LeaderLink& leader_;  // of the member's thread
  mutable core::Mutex mutex_;
  core::Condition changed_;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  PlannedPtr planned_ WEFT_GUARDED_BY(mutex_) = std::make_shared<Planned>();
  std::optional<Running> round_ WEFT_GUARDED_BY(mutex_);
  std::vector<Granted> granted_ WEFT_GUARDED_BY(mutex_);
  std::vector<weft::Transfer> transfers_ WEFT_GUARDED_BY(mutex_);
  bool writing_ WEFT_GUARDED_BY(mutex_) = false;
  std::uint64_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
  // Of the thread in serve(): what it has imported, by rank and segment.
  Round imported_in_;
  std::map<std::tuple<std::uint32_t, std::uint32_t>, Remote> remotes_;
};

}  // namespace weft::weights
