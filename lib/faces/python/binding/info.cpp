#include "python/binding/info.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <weft/engine.hpp>
#include <weft/log.hpp>
#include <weft/process.hpp>

#include "python/binding/config.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

void bind_rails(nb::module_& module) {
  nb::class_<Capability>(module, "Capability", "What a rail can do, frozen when it was opened.")
      .def_ro("provider", &Capability::provider, "libfabric's name; \"shm\" for Weft's own.")
      .def_ro("libfabric_version", &Capability::libfabric_version)
      .def_ro("domain", &Capability::domain, "NIC or interface, such as \"rdmap79s0\".")
      .def_ro("pci", &Capability::pci, "Of the NIC; empty: unknown, or none.")
      .def_ro("same_host_only", &Capability::same_host_only)
      .def_ro("pins_memory", &Capability::pins_memory, "Registering memory takes time.")
      .def_ro("keys_enforced", &Capability::keys_enforced)
      .def_ro("fence", &Capability::fence)
      .def_ro("max_message", &Capability::max_message, "Largest read or write, in bytes.")
      .def_ro("max_send", &Capability::max_send, "Largest message, in bytes.")
      .def_ro("window", &Capability::window, "Most operations at a time.")
      .def_ro("device_memory", &Capability::device_memory, "Can register GPU memory.")
      .def_ro("device_memory_problem", &Capability::device_memory_problem, "Why it can't.")
      .def_ro("maps_memory", &Capability::maps_memory)
      .def_ro("gbps", &Capability::gbps, "Link speed in Gb/s; 0: unknown.");
  nb::class_<RailInfo>(module, "RailInfo", "A rail of an engine.")
      .def_ro("name", &RailInfo::name, "Such as \"tcp:0\".")
      .def_ro("capability", &RailInfo::capability)
      .def_ro("thread", &RailInfo::thread, "Number of the progress thread that owns it.")
      .def_ro("operations", &RailInfo::operations, "Completed since it was opened.")
      .def_ro("bytes", &RailInfo::bytes, "Of these operations.")
      .def_ro("in_flight", &RailInfo::in_flight, "Operations.")
      .def_ro("lost", &RailInfo::lost, "Operations that never completed after their peer died.")
      .def_ro("numa_node", &RailInfo::numa_node, "Of its NIC; -1: unknown.")
      .def("__repr__", [](const RailInfo& self) {
        return fmt::format("<weft.RailInfo: {}, {}>", self.name, self.capability.domain);
      });
  nb::class_<Candidate>(module, "Candidate", "A NIC or interface that discovery considered.")
      .def_ro("provider", &Candidate::provider)
      .def_ro("domain", &Candidate::domain)
      .def_ro("fabric", &Candidate::fabric)
      .def_ro("pci", &Candidate::pci)
      .def_ro("gbps", &Candidate::gbps)
      .def_ro("is_nic", &Candidate::is_nic)
      .def_ro("taken", &Candidate::taken, "Used.")
      .def_ro("reason", &Candidate::reason, "Why it is used or not: a sentence.")
      .def("__repr__", [](const Candidate& self) {
        return fmt::format("<weft.Candidate: {} {}, {}>", self.provider, self.domain,
                           self.taken ? "used" : "not used");
      });
}

void bind_counters(nb::module_& module) {
  nb::class_<NicCounters>(
      module, "NicCounters",
      "Bytes over a NIC since its driver was started, for all processes; None: not counted.")
      .def_ro("nic", &NicCounters::nic)
      .def_ro("rails", &NicCounters::rails)
      .def_ro("sent", &NicCounters::sent)
      .def_ro("received", &NicCounters::received)
      .def_ro("written", &NicCounters::written)
      .def_ro("written_by_peers", &NicCounters::written_by_peers)
      .def_ro("read", &NicCounters::read)
      .def_ro("read_by_peers", &NicCounters::read_by_peers)
      .def_ro("messages_sent", &NicCounters::messages_sent)
      .def_ro("messages_received", &NicCounters::messages_received);
  nb::class_<SlowTransfer>(module, "SlowTransfer", "One of the slowest transfers.")
      .def_ro("peer", &SlowTransfer::peer)
      .def_ro("direction", &SlowTransfer::direction)
      .def_ro("priority", &SlowTransfer::priority)
      .def_ro("report", &SlowTransfer::report);
}

}  // namespace

void bind_info(nb::module_& module) {
  bind_rails(module);
  bind_counters(module);
  nb::class_<Setting> setting(module, "Setting", "An option as an engine uses it.");
  nb::enum_<Setting::Source>(setting, "Source", "Where the value came from.")
      .value("standard", Setting::Source::standard)
      .value("file", Setting::Source::file)
      .value("environment", Setting::Source::environment)
      .value("call", Setting::Source::call);
  setting.def_ro("name", &Setting::name)
      .def_ro("value", &Setting::value, "As it would be written in the environment.")
      .def_ro("source", &Setting::source)
      .def_ro("place", &Setting::place, "\"WEFT_PROVIDERS\", \"weft.toml:3\"; else empty.")
      .def("__repr__", [](const Setting& self) {
        return fmt::format("<weft.Setting: {} = {}>", self.name, self.value);
      });
  nb::class_<Info>(module, "Info", "The present state of an engine.")
      .def_ro("name", &Info::name)
      .def_ro("incarnation", &Info::incarnation)
      .def_ro("address", &Info::address)
      .def_ro("rails", &Info::rails)
      .def_ro("candidates", &Info::candidates, "What discovery considered.")
      .def_ro("settings", &Info::settings)
      .def_ro("fallback", &Info::fallback,
              "Why the rails are slower than this machine seems to have; empty if they are not.")
      .def_ro("transfers_active", &Info::transfers_active)
      .def_ro("segments", &Info::segments)
      .def("__repr__", [](const Info& self) {
        return fmt::format("<weft.Info: {}, {} rails, {} segments, {} transfers>", self.name,
                           self.rails.size(), self.segments, self.transfers_active);
      });
  module.def(
      "discover",
      [](const nb::kwargs& options) {
        const Config config = config_of(options);
        auto found = [&] {
          const Unlocked others_run;
          return discover(config);
        }();
        return must(std::move(found));
      },
      nb::sig("def discover(**options: typing.Any) -> list[Candidate]"),
      "The providers and NICs that Engine(**options) would use, and why. Opens nothing.");

  nb::enum_<LogLevel>(module, "LogLevel", "How much Weft writes to standard error.")
      .value("debug", LogLevel::debug)
      .value("info", LogLevel::info)
      .value("warning", LogLevel::warning)
      .value("error", LogLevel::error)
      .value("off", LogLevel::off);
  module.def("set_log_level", &set_log_level, "level"_a,
             "Lines below `level` are not logged. Default: warning, or the environment variable "
             "WEFT_LOG.");

  nb::class_<LibfabricInfo>(
      module, "LibfabricInfo",
      "The libfabric that Weft calls. The first of these counts: the file that the environment "
      "variable WEFT_LIBFABRIC names, the one that this process has loaded, the EFA installer's "
      "(/opt/amazon/efa), the system's.")
      .def_ro("version", &LibfabricInfo::version, "\"2.1\"; empty: none is in use.")
      .def_ro("file", &LibfabricInfo::file, "Empty: none is in use.")
      .def_ro("found", &LibfabricInfo::found, "How: \"the system has it\".")
      .def_ro("warning", &LibfabricInfo::warning,
              "What may go wrong with it; empty: nothing known.")
      .def_ro("problem", &LibfabricInfo::problem,
              "Why Weft found none; empty if it has one, or has not looked.")
      .def_ro("others", &LibfabricInfo::others,
              "Files of others that this process has loaded, which Weft does not use.");
  nb::class_<ProcessInfo>(module, "ProcessInfo", "What Weft shares with the process.")
      .def_ro("libfabric", &ProcessInfo::libfabric);
  module.def("process_info", &process_info,
             "Which libfabric Weft uses: known once an engine was opened, or after discover().");
}

}  // namespace weft::python
