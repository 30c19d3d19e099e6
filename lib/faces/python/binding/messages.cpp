#include "python/binding/messages.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <utility>
#include <weft/engine.hpp>

#include "python/binding/buffers.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

nb::bytes bytes_of(const Blob& blob) {
  return nb::bytes(blob.data(), blob.size());
}

/// An expectation or a receive, whose result is taken once and may be asked for again. `Made` is
/// what C++ gives for it.
template <typename Awaited, typename Made>
class Arrival {
 public:
  Arrival(Awaited&& awaited, std::shared_ptr<Completion> completion, Nanoseconds timeout)
      : state_(std::make_shared<State>(std::move(awaited))),
        completion_(std::move(completion)),
        default_timeout_(timeout) {}

  bool ready() const { return state_->awaited.ready(); }
  Completion& completion() const { return *completion_; }
  Made wait(Seconds timeout) const {
    const Deadline deadline = deadline_of(timeout, default_timeout_);
    return must(wait_in_slices(deadline, [&](Deadline until) { return state_->take(until); }));
  }

 private:
  struct State {
    explicit State(Awaited&& given) : awaited(std::move(given)) {}
    Awaited awaited;
    core::Mutex mutex;
    core::Condition changed;
    bool taking WEFT_GUARDED_BY(mutex) = false;  // one of several threads that wait
    std::optional<Made> made WEFT_GUARDED_BY(mutex);

    Result<Made> take(Deadline deadline) {
      core::Lock lock(mutex);
      if (!changed.wait(mutex, deadline, [&]() WEFT_REQUIRES(mutex) { return !taking || made; }))
        return fail(Code::timed_out, "another thread waits for the same");
      if (made) return *made;
      taking = true;
      lock.unlock();
      auto taken = awaited.wait(deadline);
      lock.lock();
      taking = false;
      changed.notify_all();
      if (!taken) return taken;
      made = std::move(*taken);
      return *made;
    }
  };
  std::shared_ptr<State> state_;
  std::shared_ptr<Completion> completion_;
  Nanoseconds default_timeout_;
};

using PyExpectation = Arrival<Expectation, Signals>;
using PyReceive = Arrival<Receive, Message>;

NotifyOptions notify_options(const std::shared_ptr<Completion>& completion,
                             std::optional<std::uint64_t> cookie, bool event, Seconds deadline,
                             std::optional<std::uintptr_t> gpu_stream, Late late = Late::keep) {
  NotifyOptions options;
  options.cookie = cookie.value_or(0);
  options.event = event || cookie;
  options.on_end = [completion](std::uint64_t, const Error*) { completion->end(); };
  options.deadline = deadline_of(deadline);
  if (gpu_stream) options.gpu_stream = reinterpret_cast<void*>(*gpu_stream);
  options.late = late;
  return options;
}

PyExpectation expect(const PyPeer& self, std::uint64_t id, std::uint64_t count, Seconds timeout,
                     std::optional<std::uint64_t> cookie, bool event, Late late,
                     std::optional<std::uintptr_t> gpu_stream) {
  auto completion = std::make_shared<Completion>();
  auto expected = self.peer.expect(
      id, count, notify_options(completion, cookie, event, timeout, gpu_stream, late));
  return {must(std::move(expected)), std::move(completion), self.default_timeout};
}

PyReceive receive(const PyPeer& self, std::uint64_t tag, std::uint64_t mask, Seconds timeout,
                  std::optional<std::uint64_t> cookie, bool event,
                  std::optional<std::uintptr_t> gpu_stream) {
  auto completion = std::make_shared<Completion>();
  auto asked =
      self.peer.receive(tag, mask, notify_options(completion, cookie, event, timeout, gpu_stream));
  return {must(std::move(asked)), std::move(completion), self.default_timeout};
}

void send(const PyPeer& self, std::uint64_t tag, nb::handle payload, Seconds timeout) {
  const BytesArgument bytes(payload);
  must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                      [&](Deadline until) { return self.peer.send(tag, bytes.bytes(), until); }));
}

void raise_signal(const PyPeer& self, const SignalArgument& signal, Seconds timeout) {
  const Signal raised = signal.get();
  must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                      [&](Deadline until) { return self.peer.signal(raised, until); }));
}

template <typename Arrived>
void bind_arrival(nb::class_<Arrived>& arrived, const char* wait_doc, const char* awaits) {
  arrived.def("wait", &Arrived::wait, "timeout"_a = nb::none(), wait_doc)
      .def(
          "__await__",
          [](nb::object self) {
            return nb::module_::import_("weft._aio").attr("arrival")(self).attr("__await__")();
          },
          nb::sig(awaits))
      .def_prop_ro("ready", &Arrived::ready, "Whether wait() returns, or raises, at once.");
  bind_end(arrived, [](const Arrived& self) -> Completion& { return self.completion(); });
}

}  // namespace

Signal SignalArgument::get() const {
  std::uint64_t id = 0;
  if (nb::try_cast(given_, id)) return {id, {}};
  if (!nb::isinstance<PySignal>(given_))
    throw nb::type_error("a signal is a number from 0 to 2**64 - 1, or a weft.Signal");
  const auto& whole = nb::cast<const PySignal&>(given_);
  return {whole.id,
          {reinterpret_cast<const std::byte*>(whole.payload.c_str()), whole.payload.size()}};
}

void bind_messages(nb::module_& module) {
  nb::enum_<Late>(module, "Late",
                  "What becomes of signals that come after their expectation ended without them.")
      .value("keep", Late::keep, "The next expectation of the id gets them.")
      .value("hold", Late::hold, "As keep; beyond unclaimed_bytes the peer is held back.")
      .value("drop", Late::drop, "They are dropped, until the id is expected again.");

  nb::class_<PyWaker>(module, "_Waker", "A descriptor for one event loop: see completion.hpp.")
      .def(nb::init<>())
      .def("fileno", [](const PyWaker& self) { return self.waker->fd(); })
      .def("take", [](const PyWaker& self) { return self.waker->take(); });

  nb::class_<PySignal>(module, "Signal",
                       "A counted notification at the target, raised after the data is visible.")
      .def(
          "__init__",
          [](PySignal* self, std::uint64_t id, const nb::bytes& payload) {
            new (self) PySignal{id, payload};
          },
          "id"_a, "payload"_a = nb::bytes("", 0),
          "id: chosen by the application; the peer expects the same number. payload: at most "
          "max_message bytes.")
      .def_ro("id", &PySignal::id)
      .def_ro("payload", &PySignal::payload)
      .def("__repr__", [](const PySignal& self) {
        return fmt::format("<weft.Signal: id {}, {} bytes>", self.id, self.payload.size());
      });

  nb::class_<Signals>(module, "Signals", "Expected signals that have arrived.")
      .def_ro("count", &Signals::count)
      .def_prop_ro(
          "payloads",
          [](const Signals& self) {
            nb::typed<nb::list, nb::bytes> list;
            for (const Blob& payload : self.payloads) list.append(bytes_of(payload));
            return list;
          },
          "Of the signals that carried one, in the order of arrival.")
      .def("__repr__", [](const Signals& self) {
        return fmt::format("<weft.Signals: {} signals, {} payloads>", self.count,
                           self.payloads.size());
      });

  nb::class_<Message>(module, "Message", "A tagged message.")
      .def_ro("peer", &Message::peer, "Name of the sender.")
      .def_ro("tag", &Message::tag)
      .def_prop_ro("bytes", [](const Message& self) { return bytes_of(self.bytes); })
      .def("__repr__", [](const Message& self) {
        return fmt::format("<weft.Message: tag {} of {}, {} bytes>", self.tag, self.peer,
                           self.bytes.size());
      });

  nb::class_<PyExpectation> expectation(
      module, "Expectation", nb::is_weak_referenceable(),
      "Waits for a number of signals with one id from one peer.\n\n"
      "Signals that came before count. `await expectation` gives what wait() gives. When the "
      "object "
      "goes, it is given up, and what it has collected is dropped.");
  bind_arrival(expectation,
               "The signals, once all have arrived.\n\n"
               "timeout: seconds; None: the engine's default_timeout. Raises TimedOut if it passes "
               "first: then the expectation stands. Raises RemoteFailed or Disconnected if they "
               "can't arrive any more.",
               "def __await__(self) -> typing.Generator[typing.Any, None, Signals]");
  nb::class_<PyReceive> receive(
      module, "Receive", nb::is_weak_referenceable(),
      "A request for a message. `await receive` gives what wait() gives. When the object goes, the "
      "request is given up.");
  bind_arrival(receive,
               "The message.\n\n"
               "timeout: seconds; None: the engine's default_timeout. Raises TimedOut if it passes "
               "first: then the request stands.",
               "def __await__(self) -> typing.Generator[typing.Any, None, Message]");
}

void bind_messaging(nb::module_& module) {
  constexpr std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();
  auto peer = nb::borrow<nb::class_<PyPeer>>(module.attr("Peer"));
  peer.def("signal", &raise_signal, "signal"_a, "timeout"_a = nb::none(),
           "Raises a signal there without moving data: a number, or a Signal.\n\n"
           "timeout: seconds to wait for room in the peer's queue; None: default_timeout.")
      .def("expect", &expect, "id"_a, "count"_a = 1, nb::kw_only(), "timeout"_a = nb::none(),
           "cookie"_a = nb::none(), "event"_a = false, "late"_a = Late::keep,
           "gpu_stream"_a = nb::none(),
           "Waits for `count` signals `id`: Expectation.wait(), or await.\n\n"
           "timeout: seconds after which it ends for good; None: it does not end by itself.\n"
           "cookie, event: puts an Event with that number into the engine's queue at the end.\n"
           "late: what becomes of signals that come too late.\n"
           "gpu_stream: address of a CUDA stream, whose later work begins when this has ended.")
      .def(
          "forget",
          [](const PyPeer& self, std::uint64_t first, std::optional<std::uint64_t> last) {
            must(self.peer.forget(first, last.value_or(first)));
          },
          "first"_a, "last"_a = nb::none(),
          "Forgets the signal ids from `first` to `last`, both included: drops what has arrived of "
          "them, and what arrives until they are expected again.")
      .def("send", &send, "tag"_a, "message"_a, "timeout"_a = nb::none(),
           nb::sig("def send(self, tag: int, message: bytes | bytearray | memoryview, "
                   "timeout: float | None = None) -> None"),
           "Sends a tagged message of at most max_message bytes. Returns when the bytes are copied "
           "into the peer's send queue.\n\n"
           "timeout: seconds to wait while that is full; None: default_timeout.")
      .def("receive", &receive, "tag"_a, "mask"_a = whole, nb::kw_only(), "timeout"_a = nb::none(),
           "cookie"_a = nb::none(), "event"_a = false, "gpu_stream"_a = nb::none(),
           "Asks for the next message whose tag equals `tag` in the bits of `mask`: "
           "Receive.wait(), or await. Options as for expect().")
      .def(
          "recv",
          [](const PyPeer& self, std::uint64_t tag, std::uint64_t mask, Seconds timeout) {
            return must(
                wait_in_slices(deadline_of(timeout, self.default_timeout),
                               [&](Deadline until) { return self.peer.recv(tag, mask, until); }));
          },
          "tag"_a, "mask"_a = whole, "timeout"_a = nb::none(),
          "receive() and wait() in one. timeout: seconds; None: default_timeout.");
}

}  // namespace weft::python
