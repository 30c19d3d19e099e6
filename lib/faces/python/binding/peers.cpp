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
PyPeer meet_at(PyEngine& self, const std::string& address, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return {must(call_interruptibly(deadline,
                                  [engine = self.engine, address, deadline] {
                                    return ((*engine).*meet)(address, deadline);
                                  })),
          self.default_timeout};
}

PyPeer accept(PyEngine& self, Seconds timeout) {
  return {must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                              [&](Deadline until) { return self.engine->accept(until); })),
          self.default_timeout};
}

PyPeer peer_of(PyEngine& self, const std::string& name, Seconds timeout) {
  return {must(wait_in_slices(deadline_of(timeout, self.default_timeout),
                              [&](Deadline until) { return self.engine->peer(name, until); })),
          self.default_timeout};
}

std::vector<PyPeer> peers(const PyEngine& self) {
  std::vector<PyPeer> all;
  for (Peer& peer : self.engine->peers()) all.push_back({std::move(peer), self.default_timeout});
  return all;
}

Remote lookup(const PyPeer& self, const std::string& name, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return must(call_interruptibly(
      deadline, [peer = self.peer, name, deadline] { return peer.lookup(name, deadline); }));
}

void disconnect(const PyPeer& self) {
  must(call_interruptibly(Deadline::in(Deadline::furthest),
                          [peer = self.peer] { return peer.disconnect(); }));
}

/// weft.Event.
struct PyEvent {
  Event event;
  Nanoseconds default_timeout{};  // of the peer
};

/// Waits for the first: a queue has a descriptor.
std::vector<PyEvent> poll_events(PyEngine& self, std::size_t most, Seconds timeout) {
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
  std::vector<PyEvent> taken;
  for (Event& event : events) taken.push_back({std::move(event), self.default_timeout});
  return taken;
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

  nb::class_<PyPeer>(module, "Peer",
                     "Another engine, met over the control connection. A peer that comes back is a "
                     "new Peer.")
      .def_prop_ro("name", [](const PyPeer& self) { return self.peer.name(); })
      .def_prop_ro(
          "incarnation", [](const PyPeer& self) { return self.peer.incarnation(); },
          "Changes each time the engine of that name is opened.")
      .def_prop_ro("up", [](const PyPeer& self) { return self.peer.up(); })
      .def_prop_ro("health", [](const PyPeer& self) { return self.peer.health(); })
      .def_prop_ro(
          "why_down", [](const PyPeer& self) { return exception_of(self.peer.why_down()); },
          nb::sig("def why_down(self) -> Exception | None"),
          "The error, not raised; None while up.")
      .def_prop_ro(
          "same_host", [](const PyPeer& self) { return self.peer.same_host(); },
          "Both engines are proven to be on one machine.")
      .def_prop_ro(
          "address", [](const PyPeer& self) { return self.peer.address(); }, "As advertised.")
      .def_prop_ro(
          "rails", [](const PyPeer& self) { return self.peer.rails(); },
          "Local rails that transfers to it use: \"shm:0\".")
      .def_prop_ro(
          "route_reason", [](const PyPeer& self) { return self.peer.route_reason(); },
          "Why these rails.")
      .def_prop_ro(
          "fallback", [](const PyPeer& self) { return self.peer.fallback(); },
          "Why the rails are slower than they could be; empty if they are not.")
      .def(
          "__eq__",
          [](const PyPeer& self, nb::handle other) {
            return nb::isinstance<PyPeer>(other) &&
                   equal(self.peer, nb::cast<const PyPeer&>(other).peer);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const PyPeer& self) { return self.peer.incarnation(); })
      .def("lookup", &lookup, "name"_a, "timeout"_a = nb::none(),
           "Its grant of that name, as soon as it is published there.\n\n"
           "timeout: seconds; None: default_timeout.")
      .def("disconnect", &disconnect,
           "Says goodbye; transfers with it fail. May take 2 s for GPU memory that it uses.")
      .def("__repr__", [](const PyPeer& self) {
        return fmt::format("<weft.Peer: {}, {}>", self.peer.name(), to_string(self.peer.health()));
      });

  nb::class_<PyEvent> event(module, "Event", "Something that happened: Engine.poll(), events().");
  nb::enum_<Event::Kind>(event, "Kind", "What happened.")
      .value("transfer_ended", Event::Kind::transfer_ended)
      .value("signals_arrived", Event::Kind::signals_arrived)
      .value("message_arrived", Event::Kind::message_arrived)
      .value("peer_up", Event::Kind::peer_up)
      .value("peer_down", Event::Kind::peer_down);
  event.def_prop_ro("kind", [](const PyEvent& self) { return self.event.kind; })
      .def_prop_ro(
          "cookie", [](const PyEvent& self) { return self.event.cookie; },
          "As given to write(), expect() or receive().")
      .def_prop_ro(
          "state", [](const PyEvent& self) { return self.event.state; }, "Of a transfer.")
      .def_prop_ro(
          "peer", [](const PyEvent& self) { return self.event.peer; },
          "Name of the peer concerned.")
      .def_prop_ro(
          "error", [](const PyEvent& self) { return exception_of(self.event.error); },
          nb::sig("def error(self) -> Exception | None"), "Not raised.")
      .def_prop_ro(
          "who",
          [](const PyEvent& self) -> std::optional<PyPeer> {
            if (!self.event.who) return std::nullopt;
            return PyPeer{*self.event.who, self.default_timeout};
          },
          "Of peer_up: the peer itself.")
      .def("__repr__", [](const PyEvent& self) {
        return fmt::format("<weft.Event: {}, peer {}, cookie {}>", name_of(self.event.kind),
                           self.event.peer, self.event.cookie);
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
           "connect(), and again whenever the peer is gone, until Peer.disconnect().")
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
      .def("peers", &peers, "All peers that are up.")
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
