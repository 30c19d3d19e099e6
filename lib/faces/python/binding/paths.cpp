#include "python/binding/paths.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <weft/engine.hpp>

#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

void bind_hops(nb::module_& module) {
  nb::enum_<PathSide>(module, "PathSide", "The side that a place or a copy belongs to.")
      .value("local", PathSide::local)
      .value("remote", PathSide::remote)
      .value("between", PathSide::between);
  nb::class_<Stop> stop(module, "Stop", "A place on the way of bytes.");
  nb::enum_<Stop::Kind>(stop, "Kind", "What the place is.")
      .value("host", Stop::Kind::host)
      .value("device", Stop::Kind::device)
      .value("bounce_buffer", Stop::Kind::bounce_buffer)
      .value("provider_buffer", Stop::Kind::provider_buffer)
      .value("socket_buffer", Stop::Kind::socket_buffer)
      .value("nic", Stop::Kind::nic)
      .value("wire", Stop::Kind::wire)
      .value("file", Stop::Kind::file)
      .value("file_buffer", Stop::Kind::file_buffer);
  stop.def_ro("kind", &Stop::kind)
      .def_ro("side", &Stop::side)
      .def_ro("numa_node", &Stop::numa_node, "Of the memory; -1: unknown.")
      .def_ro("device", &Stop::device, "Number of the memory's GPU; -1: none.")
      .def_ro("name", &Stop::name, "Of NICs that are known.")
      .def("__str__", [](const Stop& self) { return to_string(self); })
      .def("__repr__",
           [](const Stop& self) { return fmt::format("<weft.Stop: {}>", to_string(self)); });
  nb::class_<Hop>(module, "Hop", "One step of the way.")
      .def_ro("from_", &Hop::from)
      .def_ro("to", &Hop::to)
      .def_ro("by", &Hop::by)
      .def_ro("side", &Hop::side, "The side that makes it.")
      .def_prop_ro("copies", &Hop::copies, "Whether it is a copy from memory to memory.")
      .def("__repr__", [](const Hop& self) {
        return fmt::format("<weft.Hop: {} to {} by {}>", to_string(self.from), to_string(self.to),
                           to_string(self.by));
      });
}

Policy read_policy(const std::string& text) {
  return must(parse_policy(text));
}

}  // namespace

Policy policy_of(const std::variant<std::string, Policy>& policy) {
  if (const auto* text = std::get_if<std::string>(&policy)) return read_policy(*text);
  return std::get<Policy>(policy);
}

void bind_paths(nb::module_& module) {
  bind_hops(module);
  nb::class_<Policy>(module, "Policy",
                     "What the path of a transfer must be like; else PolicyRefused.\n\n"
                     "Text may stand for it: \"max_copies=0,forbid_cpu_copies,min_gbps=100\".")
      .def(
          "__init__",
          [](Policy* self, std::optional<unsigned> max_copies, bool forbid_cpu_copies,
             bool require_gpudirect, double min_gbps, std::vector<std::string> providers) {
            new (self) Policy{max_copies, forbid_cpu_copies, require_gpudirect, min_gbps,
                              std::move(providers)};
          },
          nb::kw_only(), "max_copies"_a = nb::none(), "forbid_cpu_copies"_a = false,
          "require_gpudirect"_a = false, "min_gbps"_a = 0.0,
          "providers"_a = std::vector<std::string>(),
          "max_copies: of each byte, on both sides together. min_gbps: lowest limit of the path. "
          "providers: those that are allowed; none: all.")
      .def_static("parse", &read_policy, "text"_a)
      .def_ro("max_copies", &Policy::max_copies)
      .def_ro("forbid_cpu_copies", &Policy::forbid_cpu_copies)
      .def_ro("require_gpudirect", &Policy::require_gpudirect)
      .def_ro("min_gbps", &Policy::min_gbps)
      .def_ro("providers", &Policy::providers)
      .def("__str__", [](const Policy& self) { return to_string(self); })
      .def("__repr__",
           [](const Policy& self) { return fmt::format("<weft.Policy: {}>", to_string(self)); });

  nb::class_<Path>(module, "Path", "What a transfer would do, as the providers declare it.")
      .def_ro("direction", &Path::direction)
      .def_ro("transport", &Path::transport)
      .def_ro("provider", &Path::provider)
      .def_ro("rails", &Path::rails, "Rails of this engine that may carry it.")
      .def_ro("same_host", &Path::same_host, "Both sides are proven to be on one machine.")
      .def_ro("hops", &Path::hops, "From source to destination.")
      .def_ro("copies", &Path::copies, "Of each byte, on both sides together.")
      .def_ro("copies_local", &Path::copies_local)
      .def_ro("copies_remote", &Path::copies_remote)
      .def_ro("cpu_copies", &Path::cpu_copies, "The copies that a CPU makes.")
      .def_ro("bounced_below", &Path::bounced_below,
              "Pieces of fewer bytes take more copies; 0: none does.")
      .def_ro("gpudirect_local", &Path::gpudirect_local)
      .def_ro("gpudirect_remote", &Path::gpudirect_remote)
      .def_ro("gbps", &Path::gbps, "Speed of the slowest link, in Gb/s; 0: unknown.")
      .def_ro("limit", &Path::limit, "That link, or why its speed is unknown.")
      .def_ro("not_used", &Path::not_used, "Better paths that are not used, with the reason.")
      .def_ro("refused", &Path::refused, "The policy that does not allow it; empty: all do.")
      .def("__repr__", [](const Path& self) {
        return fmt::format("<weft.Path: {}, {} copies, {} Gb/s{}{}>", self.provider, self.copies,
                           self.gbps, self.refused.empty() ? "" : ", refused: ", self.refused);
      });
}

void bind_explain(nb::module_& module) {
  auto engine = nb::borrow<nb::class_<PyEngine>>(module.attr("Engine"));
  engine.def(
      "explain",
      [](PyEngine& self, const PySegment& local, const Remote& remote, Direction direction,
         TransportKind transport, Priority priority,
         const std::optional<std::variant<std::string, Policy>>& policy) {
        TransferOptions options;
        options.transport = transport;
        options.priority = priority;
        if (policy) options.policy = policy_of(*policy);
        return must(self.engine->explain(*local.segment, remote, direction, options));
      },
      "local"_a, "remote"_a, "direction"_a, nb::kw_only(), "transport"_a = TransportKind::automatic,
      "priority"_a = Priority::normal, "policy"_a = nb::none(),
      "The path that a transfer between the two would take now, and whether policies allow it. "
      "Moves nothing.");
}

}  // namespace weft::python
