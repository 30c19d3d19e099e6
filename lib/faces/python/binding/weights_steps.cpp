#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <weft/weights.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/pending.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"
#include "python/binding/weights.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

/// A publisher or subscriber, and the engine that must outlive it. Calls that go on by themselves
/// keep it.
template <typename Member>
struct Group {
  std::shared_ptr<Engine> engine;
  Member member;
  const pid_t opened_by = getpid();

  Group(std::shared_ptr<Engine> of, Member&& opened)
      : engine(std::move(of)), member(std::move(opened)) {}
  bool forked() const { return getpid() != opened_by; }
};

/// weft.weights.Publisher and Subscriber.
template <typename Member>
struct PyGroup {
  std::shared_ptr<Group<Member>> group;
  Nanoseconds default_timeout{};
  std::vector<nb::object> segments;  // weft.Segment

  PyGroup(const PyEngine& engine, Member&& opened, std::vector<nb::object> of)
      : group(std::make_shared<Group<Member>>(engine.engine, std::move(opened))),
        default_timeout(engine.default_timeout),
        segments(std::move(of)) {}
  PyGroup(const PyGroup&) = delete;
  PyGroup& operator=(const PyGroup&) = delete;
  ~PyGroup() { leave(); }

  std::shared_ptr<Group<Member>> get() const {
    if (!group) raise(Error(Code::closed, "it has left the group"));
    if (group->forked())
      raise(Error(Code::forked, "it belongs to the process that forked this one; open another"));
    return group;
  }
  /// Raises if a tensor is not where its segment is any more.
  void check() const {
    const auto held = segments;
    for (const nb::object& each : held) nb::cast<const PySegment&>(each).check_tensors();
  }
  void leave() {
    auto left = std::exchange(group, nullptr);
    segments.clear();
    const Unlocked others_run;
    left.reset();
  }
};

using PyPublisher = PyGroup<weights::Publisher>;
using PySubscriber = PyGroup<weights::Subscriber>;

using PendingStep = Pending<weights::Published>;

using SegmentList = std::vector<nb::typed<nb::object, PySegment>>;

/// Adds the objects to `kept`.
weights::Segments segments_of(const SegmentList& list, std::vector<nb::object>& kept) {
  weights::Segments segments;
  for (const nb::object& each : list) {
    const auto& one = nb::cast<const PySegment&>(each);
    one.check_tensors();
    segments.push_back(one.segment);
    kept.push_back(each);
  }
  return segments;
}

void open_publisher(PyPublisher* self, PyEngine& engine, const weights::Rank& rank,
                    const SegmentList& segments, std::uint32_t number, std::uint32_t publishers,
                    std::string leader, std::uint32_t subscribers, bool verify) {
  std::vector<nb::object> kept;
  auto opened =
      weights::Publisher::open(*engine.engine, rank, segments_of(segments, kept),
                               {number, publishers, std::move(leader), subscribers, verify});
  new (self) PyPublisher(engine, must(std::move(opened)), std::move(kept));
}

weights::Published publish(const PyPublisher& self, std::uint64_t step, Seconds timeout) {
  self.check();
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return must(call_interruptibly(deadline, [group = self.get(), step, deadline] {
    return group->member.publish(step, deadline);
  }));
}

PendingStep begin_publishing(const PyPublisher& self, std::uint64_t step, Seconds timeout) {
  self.check();
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return PendingStep([group = self.get(), step, deadline](const std::atomic<bool>&) {
    return group->member.publish(step, deadline);
  });
}

void bind_publisher(nb::module_& module) {
  using weights::Published;
  nb::class_<Published>(module, "Published", "A step that is in all subscribers.")
      .def_ro("step", &Published::step)
      .def_ro("bytes", &Published::bytes, "Written by this rank.")
      .def_prop_ro(
          "elapsed",
          [](const Published& self) { return std::chrono::duration<double>(self.elapsed).count(); },
          "Seconds of the call.")
      .def("__repr__", [](const Published& self) {
        return fmt::format("<weft.weights.Published: step {}, {} bytes>", self.step, self.bytes);
      });
  bind_pending<PendingStep>(module, "_PendingStep");
  nb::class_<PyPublisher>(
      module, "Publisher", nb::is_weak_referenceable(),
      "One rank of the trainer. As a context manager it leaves the group at the end.\n\n"
      "It takes its engine's accept(), messages and signals: an engine serves one publisher or one "
      "subscriber, and needs progress=\"threads\".")
      .def("__init__", &open_publisher, "engine"_a, "holds"_a, "segments"_a, nb::kw_only(),
           "rank"_a = 0, "publishers"_a = 1, "leader"_a = "", "subscribers"_a = 1,
           "verify"_a = false,
           nb::sig("def __init__(self, engine: Engine, holds: WeightsRank, "
                   "segments: collections.abc.Sequence[Segment], *, rank: int = 0, "
                   "publishers: int = 1, leader: str = '', subscribers: int = 1, "
                   "verify: bool = False) -> None"),
           "Joins the group in the background.\n\n"
           "holds, segments: what this rank holds, as rank_of() gives both; its name is unlike "
           "all others of the group. rank: of 0 to publishers - 1; number 0 leads. leader: the "
           "address of its engine; number 0 needs none. subscribers: publish() waits until so many "
           "have joined (the leader's to say). verify: compare the bytes at both ends (XXH3).")
      .def("publish", &publish, "step"_a, "timeout"_a = nb::none(),
           "Brings the weights to all subscribers that are there. Collective: all publishers call "
           "it with the same step, which is greater than any that was published before. The memory "
           "must not change meanwhile. One call at a time.\n\n"
           "timeout: seconds; None: the engine's default_timeout. Returns when every subscriber "
           "has every byte, and every one that is alive says the step. Raises Cancelled if the "
           "step is void: no subscriber says it, nor will; publish again. Unavailable if that is "
           "not known, because the leader or too many subscribers are gone: publish a greater "
           "step. Quarantined: as one of the two, and a NIC may still read this rank's memory. "
           "Ctrl-C interrupts the wait; the step goes on until the deadline.")
      .def(
          "publish_async",
          [](nb::object self, std::uint64_t step, Seconds timeout) {
            auto pending = begin_publishing(nb::cast<const PyPublisher&>(self), step, timeout);
            return nb::module_::import_("weft._aio").attr("arrival")(std::move(pending));
          },
          "step"_a, "timeout"_a = nb::none(),
          nb::sig("def publish_async(self, step: int, timeout: float | None = None) -> "
                  "typing.Coroutine[typing.Any, typing.Any, Published]"),
          "publish() for event loops: await publisher.publish_async(7). It begins at once. If the "
          "task is cancelled, the step goes on until its end or the deadline.")
      .def("close", &PyPublisher::leave,
           "Leaves the group. A step that is under way becomes void. May be called again.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Publisher"))
      .def(
          "__exit__", [](PyPublisher& self, nb::args) { self.leave(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

/// weft.weights.Reading.
struct PyReading {
  std::optional<weights::Reading> reading;
  std::uint64_t step;
  std::size_t set;

  explicit PyReading(weights::Reading&& pinned)
      : reading(std::move(pinned)), step(reading->step()), set(reading->set()) {}
};

void bind_reading(nb::module_& module) {
  nb::class_<PyReading>(
      module, "Reading",
      "A step that is being read. Its memory stays as it is until close(), the end of the `with` "
      "block, or until the object goes; publish() waits for that before it writes to the same "
      "memory. It may outlive the subscriber.")
      .def_ro("step", &PyReading::step)
      .def_ro("set", &PyReading::set, "Index of the set of segments.")
      .def(
          "close", [](PyReading& self) { self.reading.reset(); },
          "The memory is not read any more. May be called again.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Reading"))
      .def(
          "__exit__", [](PyReading& self, nb::args) { self.reading.reset(); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("__repr__", [](const PyReading& self) {
        return fmt::format("<weft.weights.Reading: step {}, set {}{}>", self.step, self.set,
                           self.reading ? "" : ", closed");
      });
}

void bind_standing(nb::module_& module) {
  using weights::Standing, weights::StepState;
  nb::enum_<StepState>(module, "StepState", "What a subscriber's memory holds.")
      .value("none", StepState::none, "Nothing was published yet.")
      .value("ready", StepState::ready, "The step can be read.")
      .value("in_doubt", StepState::in_doubt,
             "All bytes of the next step are here; whether all others have them is being asked.")
      .value("unusable", StepState::unusable,
             "The memory is being overwritten, or was and the step became void.");
  nb::class_<Standing>(module, "Standing", "Where a subscriber stands.")
      .def_ro("state", &Standing::state)
      .def_ro("step", &Standing::step, "Of `ready`; of `in_doubt`, the last that was.")
      .def_ro("connected", &Standing::connected,
              "To the leader. A rank that is cut off keeps its step.")
      .def_ro("why", &Standing::why, "The last step that became void, and why; empty if none did.")
      .def("__repr__", [](const Standing& self) {
        constexpr const char* names[] = {"none", "ready", "in doubt", "unusable"};
        return fmt::format("<weft.weights.Standing: {}, step {}{}>",
                           names[static_cast<std::size_t>(self.state)], self.step,
                           self.connected ? "" : ", not connected");
      });
}

void open_subscriber(PySubscriber* self, PyEngine& engine, const weights::Rank& rank,
                     const std::vector<SegmentList>& sets, std::uint32_t number, std::string leader,
                     std::string state_file) {
  std::vector<nb::object> kept;
  std::vector<weights::Segments> lists;
  for (const SegmentList& set : sets) lists.push_back(segments_of(set, kept));
  auto opened = weights::Subscriber::open(*engine.engine, rank, std::move(lists),
                                          {number, std::move(leader), std::move(state_file)});
  new (self) PySubscriber(engine, must(std::move(opened)), std::move(kept));
}

void wait(const PySubscriber& self, std::uint64_t step, Seconds timeout) {
  const auto group = self.get();
  must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                      [&](Deadline until) { return group->member.wait(step, until); }));
}

PendingWait begin_waiting(const PySubscriber& self, std::uint64_t step, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return PendingWait([group = self.get(), step, deadline](const std::atomic<bool>& wanted) {
    return wait_while(wanted, deadline,
                      [&](Deadline until) { return group->member.wait(step, until); });
  });
}

void bind_subscriber(nb::module_& module) {
  nb::class_<PySubscriber>(
      module, "Subscriber", nb::is_weak_referenceable(),
      "One inference rank. As a context manager it leaves the group at the end.\n\n"
      "It takes its engine's accept(), messages and signals: an engine serves one publisher or one "
      "subscriber, and needs progress=\"threads\". Calls may be made from any thread.")
      .def("__init__", &open_subscriber, "engine"_a, "holds"_a, "sets"_a, nb::kw_only(),
           "rank"_a = 0, "leader"_a, "state_file"_a = "",
           nb::sig("def __init__(self, engine: Engine, holds: WeightsRank, "
                   "sets: collections.abc.Sequence[collections.abc.Sequence[Segment]], *, "
                   "rank: int = 0, leader: str, state_file: str = '') -> None"),
           "Joins the group in the background, and again whenever the leader was gone.\n\n"
           "holds, sets: what this rank holds, as rank_of() gives both. With two sets of "
           "segments, laid out alike, a step is written to the set that is not in use, and readers "
           "go on meanwhile. With one there is no usable step from the first byte until all ranks "
           "have the last. rank: unlike that of other subscribers. leader: the address of "
           "publisher 0's engine. state_file: says after a crash which set can be used: \"step 7 "
           "set 1\", or \"unusable\".")
      .def_prop_ro(
          "step", [](const PySubscriber& self) { return self.get()->member.step(); },
          "The step that can be read now; None if there is none.")
      .def_prop_ro("standing",
                   [](const PySubscriber& self) { return self.get()->member.standing(); })
      .def(
          "read",
          [](const PySubscriber& self) {
            self.check();
            return PyReading(must(self.get()->member.read()));
          },
          "Pins the step that can be read now. Raises Unavailable if there is none.")
      .def("wait", &wait, "step"_a, "timeout"_a = nb::none(),
           "Waits until `step`, or a greater one, can be read. timeout: seconds; None: the "
           "engine's default_timeout.")
      .def(
          "wait_async",
          [](nb::object self, std::uint64_t step, Seconds timeout) {
            auto pending = begin_waiting(nb::cast<const PySubscriber&>(self), step, timeout);
            return nb::module_::import_("weft._aio").attr("arrival")(std::move(pending));
          },
          "step"_a, "timeout"_a = nb::none(),
          nb::sig("def wait_async(self, step: int, timeout: float | None = None) -> "
                  "typing.Coroutine[typing.Any, typing.Any, None]"),
          "wait() for event loops: await subscriber.wait_async(7).")
      .def("close", &PySubscriber::leave,
           "Leaves the group. Waits up to two seconds until no peer can write any more; "
           "Segment.close() proves it. May be called again.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Subscriber"))
      .def(
          "__exit__", [](PySubscriber& self, nb::args) { self.leave(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_weights_steps(nb::module_& module) {
  bind_publisher(module);
  bind_standing(module);
  bind_reading(module);
  bind_subscriber(module);
}

}  // namespace weft::python
