#include "python/binding/peers.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <poll.h>

#include <utility>
#include <weft/engine.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

bool equal(const Peer& one, const Peer& other) {
  return one.incarnation() == other.incarnation() && one.name() == other.name();
}

template <Result<Peer> (Engine::*meet)(std::string_view, Deadline)>
Peer meet_at(PyEngine& self, const std::string& address, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return must(call_interruptibly(deadline, [engine = self.engine, address, deadline] {
    return ((*engine).*meet)(address, deadline);
  }));
}

Peer accept(PyEngine& self, Seconds timeout) {
  return must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                             [&](Deadline until) { return self.engine->accept(until); }));
}

Peer peer_of(PyEngine& self, const std::string& name, Seconds timeout) {
  return must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                             [&](Deadline until) { return self.engine->peer(name, until); }));
}

void disconnect(PyEngine& self, const Peer& peer) {
  must(call_interruptibly(Deadline::in(Deadline::furthest),
                          [engine = self.engine, peer] { return engine->disconnect(peer); }));
}

/// Waits for the first: a queue has a descriptor.
std::vector<Event> poll_events(PyEngine& self, std::size_t most, Seconds timeout) {
  std::vector<Event> events(most);
  const auto take = [&](Deadline until) -> Result<std::size_t> {
    if (const std::size_t count = self.engine->poll(events); count > 0) return count;
    pollfd queue{self.engine->event_fd(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.left());
    poll(&queue, 1, static_cast<int>(left.count()));
    if (const std::size_t count = self.engine->poll(events); count > 0) return count;
    return fail(Code::timed_out, "no event");
  };
  std::size_t count = self.engine->poll(events);
  if (count == 0 && timeout) {
    const Deadline deadline = deadline_of(*timeout, {});
    if (const auto taken = wait_in_slices(deadline, take)) count = *taken;
  }
  events.resize(count);
  return events;
}

const char* name_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::transfer_ended:
      return "transfer_ended";
    case Event::Kind::signals_arrived:
      return "signals_arrived";
    case Event::Kind::message_arrived:
      return "message_arrived";
    case Event::Kind::peer_up:
      return "peer_up";
    case Event::Kind::peer_down:
      return "peer_down";
  }
  return "unknown";
}

}  // namespace

void bind_peers(nb::module_& module) {
  nb::enum_<Health>(module, "Health", "How a peer does, as its heartbeats tell.")
      .value("down", Health::down)
      .value("up", Health::up)
      .value("slow", Health::slow, "Its machine is busy.")
      .value("silent", Health::silent, "Nothing was heard for Options.suspect_after.");

  nb::class_<Peer>(module, "Peer",
                   "Another engine, met over the control connection. A peer that comes back is a "
                   "new Peer.")
      .def_prop_ro("name", &Peer::name)
      .def_prop_ro("incarnation", &Peer::incarnation,
                   "Changes each time the engine of that name is opened.")
      .def_prop_ro("up", &Peer::up)
      .def_prop_ro("health", &Peer::health)
      .def_prop_ro(
          "why_down", [](const Peer& self) { return exception_of(self.why_down()); },
          nb::sig("def why_down(self) -> Exception | None"),
          "The error, not raised; None while up.")
      .def_prop_ro("same_host", &Peer::same_host, "Both engines are proven to be on one machine.")
      .def_prop_ro("address", &Peer::address, "As advertised.")
      .def_prop_ro("rails", &Peer::rails, "Local rails that transfers to it use: \"shm:0\".")
      .def_prop_ro("route_reason", &Peer::route_reason, "Why these rails.")
      .def_prop_ro("fallback", &Peer::fallback,
                   "Why the rails are slower than they could be; empty if they are not.")
      .def(
          "__eq__",
          [](const Peer& self, nb::handle other) {
            return nb::isinstance<Peer>(other) && equal(self, nb::cast<const Peer&>(other));
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Peer& self) { return self.incarnation(); })
      .def("__repr__", [](const Peer& self) {
        return fmt::format("<weft.Peer: {}, {}>", self.name(), to_string(self.health()));
      });

  nb::class_<Event> event(module, "Event", "Something that happened: Engine.poll(), events().");
  nb::enum_<Event::Kind>(event, "Kind", "What happened.")
      .value("transfer_ended", Event::Kind::transfer_ended)
      .value("signals_arrived", Event::Kind::signals_arrived)
      .value("message_arrived", Event::Kind::message_arrived)
      .value("peer_up", Event::Kind::peer_up)
      .value("peer_down", Event::Kind::peer_down);
  event.def_ro("kind", &Event::kind)
      .def_ro("cookie", &Event::cookie, "As given to write(), expect() or receive().")
      .def_ro("state", &Event::state, "Of a transfer.")
      .def_ro("peer", &Event::peer, "Name of the peer concerned.")
      .def_prop_ro(
          "error", [](const Event& self) { return exception_of(self.error); },
          nb::sig("def error(self) -> Exception | None"), "Not raised.")
      .def_ro("who", &Event::who, "Of peer_up: the peer itself.")
      .def("__repr__", [](const Event& self) {
        return fmt::format("<weft.Event: {}, peer {}, cookie {}>", name_of(self.kind), self.peer,
                           self.cookie);
      });
}

void bind_meeting(nb::module_& module) {
  auto engine = nb::borrow<nb::class_<PyEngine>>(module.attr("Engine"));
  engine
      .def(
          "connect", &meet_at<&Engine::connect>, "address"_a, "timeout"_a = nb::none(),
          "Meets the engine at \"host:port\". Gives the peer that is there if the two have met.\n\n"
          "timeout: seconds; None: default_timeout.")
      .def("keep_connected", &meet_at<&Engine::keep_connected>, "address"_a,
           "timeout"_a = nb::none(),
           "connect(), and again whenever the peer is gone, until disconnect().")
      .def("peer", &peer_of, "name"_a, "timeout"_a = nb::none(),
           "The peer of that name, as soon as it is up. timeout: seconds; None: default_timeout.")
      .def("accept", &accept, "timeout"_a = nb::none(),
           "The next peer that connected to this engine and was not returned before.\n\n"
           "timeout: seconds; None: default_timeout.")
      .def(
          "accept_async",
          [](nb::object self, Seconds timeout) {
            const auto& engine = nb::cast<const PyEngine&>(self);
            const std::chrono::duration<double> longest =
                timeout ? duration_of(*timeout) : engine.default_timeout;
            return nb::module_::import_("weft._aio").attr("accept")(self, longest.count());
          },
          "timeout"_a = nb::none(),
          nb::sig("def accept_async(self, timeout: float | None = None) -> "
                  "typing.Coroutine[typing.Any, typing.Any, Peer]"),
          "accept(), to be awaited in any asyncio loop. A task that is cancelled takes no peer.\n\n"
          "timeout: seconds; None: default_timeout.")
      .def("_accept_fileno", [](const PyEngine& self) { return self.engine->accept_fd(); })
      .def(
          "peers", [](const PyEngine& self) { return self.engine->peers(); },
          "All peers that are up.")
      .def("disconnect", &disconnect, "peer"_a,
           "Says goodbye; transfers with the peer fail. May take 2 s for GPU memory that it uses.")
      .def("poll", &poll_events, "most"_a = 64, "timeout"_a = nb::none(),
           "Takes up to `most` events from the queue.\n\n"
           "timeout: seconds to wait for the first; None: does not wait.")
      .def(
          "fileno", [](const PyEngine& self) { return self.engine->event_fd(); },
          "A descriptor that is readable while events are queued, for select, epoll or any event "
          "loop. Don't read it: poll() does.")
      .def(
          "events",
          [](nb::object self) { return nb::module_::import_("weft._aio").attr("events")(self); },
          nb::sig("def events(self) -> typing.AsyncIterator[Event]"),
          "The events, for `async for` in any asyncio loop; ends when the engine is closed.");
  bind_end(engine, [](const PyEngine& self) -> Completion& { return *self.closed; });
}

}  // namespace weft::python
