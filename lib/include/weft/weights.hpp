/// @file
/// New weights for running inference ranks: a step is in all of them, or in none.
///
/// A *publisher group* (the ranks of a trainer) writes the weights of a step into the memory of a
/// *subscriber group* (inference ranks). Ranks meet at the address of publisher 0, the leader.
/// Each says which shards it has and where; the leader plans once who writes what to whom
/// (weights_plan.hpp), and again when ranks come or go.
///
/// @code
/// // A trainer's rank; all of them call publish().
/// auto publisher = weights::Publisher::open(engine, self, {segment}, {.rank = 1, .publishers = 4,
///                                           .leader = "10.0.0.1:7000"});
/// publisher->publish(7, Deadline::in(10s));
/// // An inference rank, with two sets of memory.
/// auto subscriber = weights::Subscriber::open(engine, self, {{one}, {other}},
///                                             {.rank = 0, .leader = "10.0.0.1:7000"});
/// auto reading = subscriber->read();  // For as long as it lives, nobody writes to that set.
/// run(sets[reading->set()]);
/// @endcode
///
/// An engine serves one publisher or one subscriber. They take its Engine::accept(), its messages
/// with the tag `tag`, and signals with ids from `tag` on. It needs Progress::threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/engine.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/segment.hpp>
#include <weft/weights_plan.hpp>

namespace weft::weights {

/// Of all messages of publishers and subscribers: "weights" in ASCII.
inline constexpr std::uint64_t tag = 0x77'65'69'67'68'74'73'00;

/// Memory of a rank, by the numbers that its shards use (Shard::segment).
using Segments = std::vector<std::shared_ptr<Segment>>;

struct PublisherOptions {
  std::uint32_t rank = 0;         ///< Of 0 to publishers - 1. Number 0 leads.
  std::uint32_t publishers = 1;   ///< Ranks of the group.
  std::string leader = {};        ///< Address of the leader's engine. The leader needs none.
  std::uint32_t subscribers = 1;  ///< The leader's: publish() waits until so many have joined.
  bool verify = false;            ///< As TransferOptions::verify, for each transfer of this rank;
                                  ///< the leader's also for what subscribers pass on.
  /// The leader's, as in PlanOptions: whether subscribers that hold the same pass it on.
  FanOut fan_out = FanOut::automatic;
  std::uint64_t chunk_bytes = PlanOptions{}.chunk_bytes;
};

/// A step that is in all subscribers.
struct Published {
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;  ///< Written by this rank.
  Nanoseconds elapsed{};    ///< Of the call.
};

/// One rank of the publisher group.
class WEFT_API Publisher {
 public:
  /// Joins the group in the background. `engine` must outlive the publisher; `self.name` must be
  /// unique in the group.
  static Result<Publisher> open(Engine& engine, Rank self, Segments segments,
                                PublisherOptions options);
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  /// Leaves the group. A step that is under way becomes void.
  ~Publisher();

  /// Brings the weights in this rank's segments to all subscribers that are there. Collective: all
  /// publishers call it with the same step, which is greater than any that was published before.
  /// The memory must not change meanwhile. One call at a time.
  ///
  /// Succeeds when every subscriber has every byte and every one the leader can reach reports
  /// `step`. One that was just cut off asks the others first.
  /// - `cancelled`: the step is void. No subscriber reports it, nor will. The message says why: a
  ///   rank died, a transfer failed, a reader kept the memory, nine tenths of the time were over.
  /// - `unavailable`: not known, because the leader or too many subscribers are gone. Those that
  ///   live agree among themselves. Publish a greater step.
  /// - `quarantined`: as one of the two, and a NIC may still read this rank's segments.
  Result<Published> publish(std::uint64_t step, Deadline deadline);

 private:
  class State;
  explicit Publisher(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

struct SubscriberOptions {
  std::uint32_t rank = 0;   ///< Unlike that of other subscribers.
  std::string leader = {};  ///< Address of publisher 0.
  /// A file that says after a crash which set of segments can be used: "step 7 set 1", or
  /// "unusable". For memory that outlives the process. Written by renaming; not synced to disk.
  std::string state_file = {};
};

enum class StepState : std::uint8_t {
  none,      ///< Nothing was published yet.
  ready,     ///< step() can be read.
  in_doubt,  ///< All bytes of the next step are here; whether all others have them is being asked.
  unusable,  ///< The memory is being overwritten, or was and the step became void.
};

struct Standing {
  StepState state = StepState::none;
  std::uint64_t step = 0;  ///< Of `ready`; of `in_doubt`, the last that was.
  bool connected = false;  ///< To the leader. A rank that is cut off keeps its step.
  std::string why = {};    ///< The last step that became void, and why; empty if none did.
};

/// A version that is being read. Its memory stays as it is until this is destroyed; publish() waits
/// for that before it writes to the same memory. It may outlive the subscriber.
class WEFT_API Reading {
 public:
  Reading(Reading&&) noexcept = default;
  Reading& operator=(Reading&&) noexcept = default;
  ~Reading() = default;

  std::uint64_t step() const noexcept { return step_; }
  std::size_t set() const noexcept { return set_; }  ///< Index of the set of segments.

 private:
  friend class Subscriber;
  Reading(std::uint64_t step, std::size_t set, std::shared_ptr<void> pin)
      : step_(step), set_(set), pin_(std::move(pin)) {}
  std::uint64_t step_;
  std::size_t set_;
  std::shared_ptr<void> pin_;
};

/// One rank of the subscriber group. All calls may be made from any thread.
class WEFT_API Subscriber {
 public:
  /// Joins the group in the background, and again whenever the leader was gone.
  ///
  /// With two sets of segments, laid out alike, a step is written to the set that is not in use,
  /// and readers go on meanwhile. With one set there is no usable step from the first byte until
  /// all have the last.
  static Result<Subscriber> open(Engine& engine, Rank self, std::vector<Segments> sets,
                                 SubscriberOptions options);
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  /// Leaves the group. Waits up to two seconds until no peer can write any more; segments must be
  /// released (Segment::release) before their memory is used for something else.
  ~Subscriber();

  /// The step that can be read now; none if there is none.
  std::optional<std::uint64_t> step() const noexcept;
  Standing standing() const;
  /// Pins the step that can be read now. `unavailable` if there is none.
  Result<Reading> read() const;
  /// Waits until step() is at least `step`.
  Result<void> wait(std::uint64_t step, Deadline deadline) const;

 private:
  class State;
  explicit Subscriber(std::shared_ptr<State> state);
  Result<void> usable() const;
  std::shared_ptr<State> state_;
};

}  // namespace weft::weights
