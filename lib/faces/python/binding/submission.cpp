// The methods of weft.Engine that prepare and begin transfers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <utility>
#include <variant>
#include <weft/engine.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/messages.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/paths.hpp"
#include "python/binding/pieces.hpp"
#include "python/binding/text.hpp"
#include "python/binding/transfers.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

// To begin a transfer of no more takes a few microseconds, copy included (a guess): less than to
// let go of Python's lock and to wait for it again, which takes milliseconds beside a thread that
// computes.
constexpr std::uint64_t keeps_lock_to_carry = 64 << 10;  // bytes
constexpr std::size_t keeps_lock_for = 100;              // pieces

constexpr const char* options_doc =
    "\n\n"
    "timeout: seconds after which it ends as timed_out; None: the engine's default_timeout.\n"
    "signal: raised at the peer once all bytes are visible there; a number, or a Signal.\n"
    "cookie, event: puts an Event with that number into the engine's queue at the end.\n"
    "priority, transport, policy: see Priority, TransportKind, Policy.\n"
    "wait_for_room: seconds to wait if Options.max_transfers are under way; else QueueFull.\n"
    "verify: compares the bytes at both ends (XXH3) before the end and the signal.\n"
    "after_gpu_event: address of a recorded CUDA event; the transfer begins when it has happened.";

Result<Prepared> prepare(PyEngine& self, const PySegment& local, const Remote& remote,
                         Direction direction, const PieceArgument& pieces) {
  return pieces.visit([&](const auto& list) {
    return self.engine->prepare(*local.segment, remote, direction, list);
  });
}

PyPrepared prepare_list(PyEngine& self, const PySegment& local, const Remote& remote,
                        Direction direction, nb::handle pieces) {
  local.check();
  const PieceArgument list(pieces);
  auto prepared = [&] {
    const Unlocked others_run;
    return prepare(self, local, remote, direction, list);
  }();
  return {std::make_shared<Prepared>(must(std::move(prepared))), local.segment, local.buffer};
}

/// By `start(TransferOptions)`.
template <typename Start>
PyTransfer begin(PyEngine& self, const std::weak_ptr<Segment>& local, std::uint64_t bytes,
                 TransferOptions&& options, Start&& start) {
  auto completion = std::make_shared<Completion>();
  options.on_end = [completion](const Ended&) { completion->end(); };
  auto transfer = [&] {
    const Unlocked others_run(bytes > keeps_lock_to_carry || options.wait_for_room.has_value());
    return start(std::move(options));
  }();
  return {std::make_shared<Transfer>(must(std::move(transfer))), local, std::move(completion),
          self.default_timeout, bytes};
}

PyTransfer begin(PyEngine& self, const std::weak_ptr<Segment>& local, const Prepared& prepared,
                 std::optional<std::span<const std::uint32_t>> picks, TransferOptions&& options) {
  return begin(self, local, prepared.bytes(), std::move(options), [&](TransferOptions&& known) {
    return picks ? self.engine->submit(prepared, *picks, std::move(known))
                 : self.engine->submit(prepared, std::move(known));
  });
}

/// A method that begins a transfer of `subject`; the options are the same for all.
template <typename... Subject, typename Start, typename... Extra>
void define(nb::class_<PyEngine>& engine, const char* name, const std::string& doc, Start start,
            Extra&&... arguments) {
  engine.def(
      name,
      [start](PyEngine& self, Subject... subject, Seconds timeout,
              const std::optional<SignalArgument>& signal, std::optional<std::uint64_t> cookie,
              bool event, Priority priority, TransportKind transport,
              const std::optional<std::variant<std::string, Policy>>& policy, Seconds wait_for_room,
              bool verify, std::optional<std::uintptr_t> after_gpu_event) {
        TransferOptions options;
        options.deadline = deadline_of(timeout);
        if (signal) options.signal = signal->get();
        options.cookie = cookie.value_or(0);
        options.event = event || cookie;
        options.priority = priority;
        options.transport = transport;
        if (policy) options.policy = policy_of(*policy);
        options.wait_for_room = deadline_of(wait_for_room);
        options.verify = verify;
        options.after_gpu_event = reinterpret_cast<void*>(after_gpu_event.value_or(0));
        return start(self, subject..., std::move(options));
      },
      std::forward<Extra>(arguments)..., nb::kw_only(), "timeout"_a = nb::none(),
      "signal"_a = nb::none(), "cookie"_a = nb::none(), "event"_a = false,
      "priority"_a = Priority::normal, "transport"_a = TransportKind::automatic,
      "policy"_a = nb::none(), "wait_for_room"_a = nb::none(), "verify"_a = false,
      "after_gpu_event"_a = nb::none(), (doc + options_doc).c_str());
}

void define_whole(nb::class_<PyEngine>& engine, const char* name, Direction direction,
                  const std::string& doc) {
  define<const PySegment&, const Remote&, nb::handle>(
      engine, name, doc,
      [direction](PyEngine& self, const PySegment& local, const Remote& remote, nb::handle pieces,
                  TransferOptions&& options) {
        local.check();
        const PieceArgument list(pieces);
        auto prepared = [&] {
          const Unlocked others_run(list.size() > keeps_lock_for);
          return prepare(self, local, remote, direction, list);
        }();
        return begin(self, local.segment, must(std::move(prepared)), std::nullopt,
                     std::move(options));
      },
      "local"_a, "remote"_a, "pieces"_a);
}

}  // namespace

void bind_submission(nb::module_& module) {
  auto engine = nb::borrow<nb::class_<PyEngine>>(module.attr("Engine"));
  engine.def("prepare", &prepare_list, "local"_a, "remote"_a, "direction"_a, "pieces"_a,
             "Checks a list of pieces once, to be submitted any number of times.\n\n"
             "pieces: an array (n, 3) of integers: offset in the local segment, offset in the "
             "remote one, bytes. Arrays of uint64 or int64 in C order are used as they lie. Or a "
             "list of such triples, Pieces, Strided or Paged. Pieces of one list must not overlap "
             "on the side that is written. The list is copied.");
  define_whole(engine, "write", Direction::write,
               "Begins to write pieces of the local segment into the peer's memory.\n\n"
               "pieces: as for prepare().");
  define_whole(engine, "read", Direction::read,
               "Begins to read pieces of the peer's memory into the local segment.\n\n"
               "pieces: as for prepare().");
  define<const PySegment&, const Remote&>(
      engine, "warm",
      "Connects ahead of the first transfer: each NIC that would carry it sends a request to every "
      "peer NIC it is paired with, and waits for the reply. A transfer of no bytes.",
      [](PyEngine& self, const PySegment& local, const Remote& remote, TransferOptions&& options) {
        local.check();
        return begin(self, local.segment, 0, std::move(options), [&](TransferOptions&& known) {
          return self.engine->warm(*local.segment, remote, std::move(known));
        });
      },
      "local"_a, "remote"_a);
  define<const PyPrepared&, nb::handle>(
      engine, "submit",
      "Begins the pieces of `prepared` whose numbers are in `picks`: an array of integers (uint32 "
      "is used as it lies); None: all pieces.",
      [](PyEngine& self, const PyPrepared& prepared, nb::handle picks, TransferOptions&& options) {
        prepared.check();
        const auto begun = [&](std::optional<std::span<const std::uint32_t>> picked) {
          return begin(self, prepared.segment, *prepared.list, picked, std::move(options));
        };
        if (picks.is_none()) return begun(std::nullopt);
        const PageNumbers numbers(picks, "picks", false);
        return begun(numbers.get());
      },
      "prepared"_a, "picks"_a = nb::none());
}

}  // namespace weft::python
