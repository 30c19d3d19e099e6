#include "python/binding/testkit.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <weft/testkit.hpp>

#include "python/binding/config.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

using testkit::FaultCounts, testkit::Faults;

/// Of all operations.
double share(double value, const char* name) {
  if (value >= 0 && value <= 1) return value;
  raise(Error(Code::invalid_argument, std::string(name) + " is a share, from 0 to 1"));
}

void set(Faults& self, std::optional<std::size_t> rail, double delay, double delay_by,
         double reorder, double again, double refuse, double failing, double duplicate, double drop,
         std::uint64_t seed) {
  testkit::Fault fault;
  fault.seed = seed;
  fault.delay = share(delay, "delay");
  fault.delay_by = duration_of(delay_by);
  fault.reorder = share(reorder, "reorder");
  fault.again = share(again, "again");
  fault.refuse = share(refuse, "refuse");
  fault.fail = share(failing, "fail");
  fault.duplicate = share(duplicate, "duplicate");
  fault.drop = share(drop, "drop");
  if (rail)
    self.set(*rail, fault);
  else
    self.set(fault);
}

PyEngine* open(const Faults& faults, const nb::kwargs& options) {
  const Config config = config_of(options);
  auto opened = [&] {
    const Unlocked others_run;
    return testkit::open(config, faults);
  }();
  return new PyEngine(must(std::move(opened)));
}

}  // namespace

void bind_testkit(nb::module_& module) {
  nb::class_<FaultCounts>(module, "FaultCounts", "How often each fault has happened.")
      .def_ro("delayed", &FaultCounts::delayed)
      .def_ro("reordered", &FaultCounts::reordered)
      .def_ro("again", &FaultCounts::again)
      .def_ro("refused", &FaultCounts::refused)
      .def_ro("failed", &FaultCounts::failed)
      .def_ro("duplicated", &FaultCounts::duplicated)
      .def_ro("dropped", &FaultCounts::dropped);

  nb::class_<Faults>(
      module, "Faults",
      "A switch for what goes wrong with the operations that carry transfers, on the rails of one "
      "or more engines. Signals and messages are not touched.\n\n"
      "What is set counts for operations that are posted afterwards; those that are held back end "
      "then, the dropped ones with an error. May be used from any thread.")
      .def(nb::init<>(), "Nothing goes wrong yet.")
      .def("set", &set, nb::kw_only(), "rail"_a = nb::none(), "delay"_a = 0.0, "delay_by"_a = 0.001,
           "reorder"_a = 0.0, "again"_a = 0.0, "refuse"_a = 0.0, "fail"_a = 0.0,
           "duplicate"_a = 0.0, "drop"_a = 0.0, "seed"_a = 1,
           "Shares of all operations, from 0 to 1.\n\n"
           "rail: its number in Engine.info(); None: all rails.\n"
           "delay: the end is told later, by up to `delay_by` seconds.\n"
           "reorder: the end is told after that of a later operation.\n"
           "again: the NIC has no room, for this operation and a few that follow.\n"
           "refuse: the NIC refuses it; nothing is carried out.\n"
           "fail: it is carried out, and ends with an error.\n"
           "duplicate: it is carried out twice.\n"
           "drop: it is never carried out, and does not end before the switch changes.\n"
           "seed: the same one draws the same faults.")
      .def("kill", &Faults::kill, "rail"_a,
           "The rail refuses all, as a NIC that is gone does: others take over. Over shm, memory "
           "that "
           "the peer maps (Memory.shared) keeps to one rail, and fails with it.")
      .def("clear", &Faults::clear, "Nothing goes wrong any more.")
      .def_prop_ro("counts", &Faults::counts);

  module.def("_open_with_faults", &open, "faults"_a, "options"_a, nb::rv_policy::take_ownership,
             nb::sig("def _open_with_faults(faults: Faults, **options: typing.Any) -> Engine"));
}

}  // namespace weft::python
