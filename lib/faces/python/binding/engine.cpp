#include "python/binding/engine.hpp"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <weft/engine.hpp>

#include "python/binding/buffers.hpp"
#include "python/binding/config.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/memory.hpp"
#include "python/binding/messages.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/paths.hpp"
#include "python/binding/peers.hpp"
#include "python/binding/text.hpp"
#include "python/binding/transfers.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

// As Engine's destructor has.
constexpr std::chrono::seconds closes_within(2);

void open(PyEngine* self, const nb::kwargs& options) {
  const Config config = config_of(options);
  auto opened = [&] {
    const Unlocked others_run;
    return Engine::open(config);
  }();
  new (self) PyEngine(must(std::move(opened)));
}

void close(PyEngine& self, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, closes_within);
  self.closed->end();
  must(call_interruptibly(deadline,
                          [engine = self.engine, deadline] { return engine->close(deadline); }));
  *self.over = true;
}

Remote import_grant(PyEngine& self, nb::handle blob, Seconds timeout) {
  const BytesArgument given(blob);
  const Bytes bytes = given.bytes();
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return must(
      call_interruptibly(deadline, [engine = self.engine, copy = Blob(bytes.begin(), bytes.end()),
                                    deadline] { return engine->import(copy, deadline); }));
}

Remote fetch(PyEngine& self, const std::string& address, const std::string& name, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return must(call_interruptibly(deadline, [engine = self.engine, address, name, deadline] {
    return engine->fetch(address, name, deadline);
  }));
}

void reopen(PyEngine& self, const std::string& rail, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  must(call_interruptibly(
      deadline, [engine = self.engine, rail, deadline] { return engine->reopen(rail, deadline); }));
}

}  // namespace

/// Engines that the program forgets are closed, within two seconds.
PyEngine::~PyEngine() {
  closed->end();
  const Unlocked others_run;
  engine.reset();
}

void bind_engine(nb::module_& module) {
  nb::class_<PyEngine>(
      module, "Engine", nb::is_weak_referenceable(),
      "Rails, threads and peers of one process. Calls may be made from any thread.\n\n"
      "In a forked child every call raises Forked: the child opens an engine of its own. As a "
      "context manager it is closed at the end.")
      .def("__init__", &open, nb::sig("def __init__(self, **options: typing.Any) -> None"),
           "Opens rails and starts listening.\n\n"
           "options: see weft.Options. Times are seconds, lists are lists of text. What is not "
           "given comes from the environment (WEFT_LISTEN, ...) and from the TOML file, unless "
           "use_environment is False.")
      .def("close", &close, "timeout"_a = 2.0,
           "Says goodbye to peers, ends all transfers as Closed, stops the threads.\n\n"
           "timeout: seconds. Raises Quarantined if something could not be closed in time.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Engine"))
      .def(
          "__exit__", [](PyEngine& self, nb::args) { close(self, Seconds()); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def_prop_ro("name", [](const PyEngine& self) { return self.engine->name(); })
      .def_prop_ro(
          "address", [](const PyEngine& self) { return self.engine->address(); },
          "What peers pass to connect(); empty if the engine does not listen.")
      .def(
          "info", [](const PyEngine& self) { return self.engine->info(); },
          "Rails, candidates, settings, and counts.")
      .def(
          "nic_counters", [](const PyEngine& self) { return self.engine->nic_counters(); },
          "What the RDMA NICs of the rails have counted: one entry for each NIC.")
      .def("reopen", &reopen, "rail"_a, "timeout"_a = nb::none(),
           "Closes a rail (\"tcp:0\") and opens it again. Afterwards nothing that either side "
           "posted over it before touches memory.")
      .def("add", &add, "memory"_a, nb::kw_only(), "read_only"_a = false, "near_gpu"_a = "",
           nb::sig("def add(self, memory: typing.Any, *, read_only: bool = False, "
                   "near_gpu: str = '') -> Segment"),
           "Registers memory with the rails that serve it, without a copy.\n\n"
           "memory: an object with the buffer protocol (numpy, bytearray, mmap, array) or DLPack "
           "(torch, cupy), whose elements lie one after the other; or weft.Memory. Read-only "
           "objects (bytes) are sources only, as with read_only=True: peers may read them, and "
           "they may be written to peers. The object stays alive, and its memory where it is: see "
           "Segment.\n\n"
           "near_gpu: PCI address of the GPU that host memory is used with.")
      .def("import_grant", &import_grant, "blob"_a, "timeout"_a = nb::none(),
           nb::sig("def import_grant(self, blob: bytes | bytearray | memoryview, "
                   "timeout: float | None = None) -> Remote"),
           "Reads a grant of a connected peer (Grant.blob), and asks the peer whether it holds. "
           "Raises Stale if it does not, or if that engine was restarted since.\n\n"
           "timeout: seconds; None: default_timeout.")
      .def(
          "publish",
          [](PyEngine& self, const std::string& name, const PyGrant& grant) {
            grant.check();
            must(self.engine->publish(name, *grant.grant));
          },
          "name"_a, "grant"_a,
          "Makes a grant known to every peer under a name of at most 255 bytes.")
      .def("share", &share, "memory"_a, "name"_a, "rights"_a,
           nb::sig("def share(self, memory: typing.Any, name: str, rights: Rights) -> Segment"),
           "add(), Segment.grant() of all of it, and publish(): until the segment is released.")
      .def("fetch", &fetch, "address"_a, "name"_a, "timeout"_a = nb::none(),
           "connect() and Peer.lookup(): the grant that the engine at \"host:port\" has "
           "published.\n\n"
           "timeout: seconds; None: default_timeout.")
      .def(
          "metrics_text", [](const PyEngine& self) { return must(self.engine->metrics_text()); },
          "Metrics in Prometheus's text format.")
      .def(
          "snapshot", [](const PyEngine& self) { return must(self.engine->snapshot()); },
          "The same and the slowest transfers, as one JSON document.")
      .def(
          "slowest_transfers",
          [](const PyEngine& self) { return must(self.engine->slowest_transfers()); },
          "At most 16 transfers of the last one to two minutes, the slowest first.")
      .def_prop_ro("metrics_address",
                   [](const PyEngine& self) { return self.engine->metrics_address(); })
      .def(
          "progress",
          [](PyEngine& self) {
            auto made = [&] {
              const Unlocked others_run;
              return self.engine->progress();
            }();
            return must(std::move(made));
          },
          "With progress=\"manual\": one round without waiting; how many operations ended.")
      .def("__repr__", [](const PyEngine& self) {
        return fmt::format("<weft.Engine: {}{}{}>", self.engine->name(),
                           self.engine->address().empty() ? "" : " at ", self.engine->address());
      });
  bind_meeting(module);
  bind_messaging(module);
  bind_explain(module);
  bind_submission(module);
}

}  // namespace weft::python
