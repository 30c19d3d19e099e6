#include "python/binding/transfers.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <weft/transfer.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/pending.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

double seconds_of(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A transfer ends by a deadline of its own.
void wait(const PyTransfer& self, Seconds timeout) {
  must(wait_in_slices(
      deadline_of(timeout, Deadline::furthest),
      [&](Deadline until) { return self.transfer->wait(until); }, !self.transfer->quiescent()));
}

void wait_quiescent(const PyTransfer& self, Seconds timeout) {
  must(wait_in_slices(
      deadline_of(timeout, self.default_timeout),
      [&](Deadline until) { return self.transfer->wait_quiescent(until); },
      !self.transfer->quiescent()));
}

PendingWait begin_quiescing(const PyTransfer& self, Seconds timeout) {
  const Deadline deadline = deadline_of(timeout, self.default_timeout);
  return PendingWait([transfer = self.transfer, deadline](const std::atomic<bool>& wanted) {
    return wait_while(wanted, deadline, [&](Deadline until) -> Result<void> {
      auto waited = transfer->wait_quiescent(until);
      return transfer->quiescent() ? Result<void>() : waited;
    });
  });
}

nb::bytes placed(const PyTransfer& self) {
  const std::vector<Placed> pieces = self.transfer->placed();
  static_assert(sizeof(Placed) == 1);
  return nb::bytes(pieces.data(), pieces.size());
}

void bind_enums(nb::module_& module) {
  nb::enum_<Direction>(module, "Direction", "Which way the bytes go.")
      .value("write", Direction::write, "From the local segment into the peer's.")
      .value("read", Direction::read, "From the peer's segment into the local one.");
  nb::enum_<State>(module, "State", "Of a transfer. It ends in exactly one of the last four.")
      .value("active", State::active)
      .value("done", State::done)
      .value("failed", State::failed)
      .value("cancelled", State::cancelled)
      .value("timed_out", State::timed_out);
  nb::enum_<TransportKind>(module, "TransportKind", "The transport that carries the bytes.")
      .value("automatic", TransportKind::automatic)
      .value("one_sided", TransportKind::one_sided, "RMA straight between the two segments.")
      .value("bounce", TransportKind::bounce, "Through bounce buffers: two more copies.")
      .value("device_copy", TransportKind::device_copy, "The copy engine of this side's GPU.");
  nb::enum_<Priority>(module, "Priority",
                      "The order of transfers to one peer. No class starves; within a class the "
                      "earliest deadline goes first.")
      .value("latency", Priority::latency, "A request waits for it.")
      .value("normal", Priority::normal)
      .value("bulk", Priority::bulk, "When nothing else is waiting.");
  nb::enum_<Placed>(module, "Placed", nb::is_arithmetic(), "The outcome of one piece.")
      .value("all", Placed::all, "Every byte is in its place.")
      .value("none", Placed::none, "No byte was moved.")
      .value("unknown", Placed::unknown, "Some bytes may be in place, or may still arrive.");
  nb::enum_<Mover>(module, "Mover", "What moves bytes from one place to the next.")
      .value("nic", Mover::nic)
      .value("copy_engine", Mover::copy_engine)
      .value("cpu", Mover::cpu)
      .value("kernel", Mover::kernel)
      .value("drive", Mover::drive);
}

void bind_report(nb::module_& module) {
  using Copied = Report::Copied;
  nb::class_<Report::RailShare>(module, "RailShare", "The share of a rail in a transfer.")
      .def_ro("rail", &Report::RailShare::rail)
      .def_ro("operations", &Report::RailShare::operations)
      .def_ro("bytes", &Report::RailShare::bytes)
      .def("__repr__", [](const Report::RailShare& self) {
        return fmt::format("<weft.RailShare: {} bytes by {}>", self.bytes, self.rail);
      });
  nb::class_<Copied> copied(module, "Copied", "A copy of bytes from memory to memory.");
  nb::enum_<Copied::Known>(copied, "Known", "How the copy is known.")
      .value("counted", Copied::Known::counted, "This engine made it, or had it made.")
      .value("declared", Copied::Known::declared, "The provider says that it copies.")
      .value("unknown", Copied::Known::unknown, "It may have been made; `bytes` is 0.");
  copied.def_ro("known", &Copied::known)
      .def_ro("by", &Copied::by)
      .def_ro("at_peer", &Copied::at_peer, "On the peer's side.")
      .def_ro("bytes", &Copied::bytes);
  nb::class_<Report>(module, "Report",
                     "The work of a transfer so far, or in all once it has ended.")
      .def_ro("state", &Report::state)
      .def_prop_ro(
          "error", [](const Report& self) { return exception_of(self.error); },
          nb::sig("def error(self) -> Exception | None"))
      .def_ro("bytes", &Report::bytes, "Requested.")
      .def_ro("bytes_done", &Report::bytes_done, "Completed.")
      .def_ro("ranges", &Report::ranges, "Requested pieces.")
      .def_ro("runs", &Report::runs, "Pieces after neighbours were joined.")
      .def_ro("operations", &Report::operations, "Chunks handed to transports.")
      .def_ro("transport", &Report::transport)
      .def_ro("rails", &Report::rails, "The share of each rail.")
      .def_ro("copied", &Report::copied)
      .def_ro("amplification", &Report::amplification,
              "Copied bytes for each byte carried, on both sides, as far as known.")
      .def_ro("retries", &Report::retries, "Chunks that failed and were offered again.")
      .def_prop_ro(
          "queued", [](const Report& self) { return seconds_of(self.queued); },
          "Seconds from submission until a rail took the first chunk.")
      .def_prop_ro(
          "carried", [](const Report& self) { return seconds_of(self.carried); },
          "Seconds from then until the last chunk completed.")
      .def_ro("fallback", &Report::fallback, "Why slower rails were used; empty if none were.")
      .def_prop_ro(
          "elapsed", [](const Report& self) { return seconds_of(self.elapsed); },
          "Seconds from submission to the end, or to now.")
      .def("__repr__", [](const Report& self) {
        return fmt::format("<weft.Report: {}, {} of {} bytes in {:.6f} s>", to_string(self.state),
                           self.bytes_done, self.bytes, seconds_of(self.elapsed));
      });
}

}  // namespace

void bind_transfers(nb::module_& module) {
  bind_enums(module);
  bind_report(module);

  nb::class_<PyPrepared>(module, "Prepared",
                         "A list of pieces whose ranges and rights are checked. It may be "
                         "submitted any number of times, whole or by index, from any thread.")
      .def("__len__", [](const PyPrepared& self) { return self.list->size(); })
      .def_prop_ro(
          "bytes", [](const PyPrepared& self) { return self.list->bytes(); },
          "In all pieces together.")
      .def("__repr__", [](const PyPrepared& self) {
        return fmt::format("<weft.Prepared: {} pieces, {} bytes>", self.list->size(),
                           self.list->bytes());
      });

  bind_pending<PendingWait>(module, "_PendingWait");
  nb::class_<PyTransfer> transfer(
      module, "Transfer", nb::is_weak_referenceable(),
      "Pieces on their way in one direction.\n\n"
      "`await transfer` waits for the end in any asyncio loop, and raises as wait() does. A task "
      "that is cancelled, by a timeout too, goes on at once, and its transfer is cancelled: look "
      "at `quiescent` before the memory is used again. To drop the object neither waits nor "
      "cancels: the memory stays alive for it.");
  transfer.def_prop_ro("state", [](const PyTransfer& self) { return self.transfer->state(); })
      .def_prop_ro(
          "quiescent", [](const PyTransfer& self) { return self.transfer->quiescent(); },
          "Nothing touches the local memory for it any more. One that has ended may still "
          "not be quiescent, for example after its deadline.")
      .def("wait", &wait, "timeout"_a = nb::none(),
           "Waits for the end; other threads run, and Ctrl-C interrupts it.\n\n"
           "timeout: seconds; None: until the end, which comes by the transfer's own timeout. "
           "Raises the error that ended it, and TimedOut if `timeout` passed first: then the "
           "transfer goes on.")
      .def("wait_quiescent", &wait_quiescent, "timeout"_a = nb::none(),
           "As wait(), then until quiescent. timeout: seconds; None: the engine's "
           "default_timeout.")
      .def(
          "quiescent_async",
          [](nb::object self, Seconds timeout) {
            auto pending = begin_quiescing(nb::cast<const PyTransfer&>(self), timeout);
            return nb::module_::import_("weft._aio").attr("arrival")(std::move(pending));
          },
          "timeout"_a = nb::none(),
          nb::sig("def quiescent_async(self, timeout: float | None = None) -> "
                  "typing.Coroutine[typing.Any, typing.Any, None]"),
          "Waits until quiescent, however the transfer ended, in any asyncio loop. Cancels "
          "nothing.\n\n"
          "timeout: seconds; None: the engine's default_timeout. Raises TimedOut if it passes "
          "first: then the memory is still in use.")
      .def(
          "cancel", [](const PyTransfer& self) { self.transfer->cancel(); },
          "Asks for an early end. Pieces that are not posted stay so, posted ones drain. Never "
          "blocks.")
      .def(
          "report", [](const PyTransfer& self) { return self.transfer->report(); },
          "What it has done so far.")
      .def("placed", &placed,
           "The outcome of each piece in the order of submission, once it has ended: a byte each, "
           "a value of Placed (numpy.frombuffer(transfer.placed(), numpy.uint8)).")
      .def(
          "__await__",
          [](nb::object self) {
            return nb::module_::import_("weft._aio").attr("transfer")(self).attr("__await__")();
          },
          nb::sig("def __await__(self) -> typing.Generator[typing.Any, None, None]"))
      .def("__repr__", [](const PyTransfer& self) {
        return fmt::format("<weft.Transfer: {}, {} bytes>", to_string(self.transfer->state()),
                           self.bytes);
      });
  bind_end(transfer, [](const PyTransfer& self) -> Completion& { return *self.completion; });
}

}  // namespace weft::python
