#include "python/binding/config.hpp"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "python/binding/errors.hpp"
#include "python/binding/text.hpp"
#include "python/binding/waiting.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

std::string_view type_of(const std::string& name) {
  for (const OptionInfo& option : options())
    if (option.name == name) return option.type;
  return {};
}

std::string text_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value));
}

std::string list_text(nb::handle value) {
  std::string text;
  for (const nb::handle item : value) text += (text.empty() ? "" : ",") + text_of(item);
  return text;
}

std::string dict_text(const nb::dict& policies) {
  std::string text;
  for (const auto& [peer, policy] : policies)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", text_of(peer), text_of(policy));
  return text;
}

/// As it would be written in the environment; times are seconds.
std::string text_of(nb::handle value, std::string_view type) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value) ? "true" : "false";
  if (type == "time" && (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())))
    return fmt::format("{}ns", duration_of(nb::cast<double>(value)).count());
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) return list_text(value);
  if (PyDict_Check(value.ptr())) return dict_text(nb::borrow<nb::dict>(value));
  return text_of(value);
}

}  // namespace

Config config_of(const nb::kwargs& options) {
  Config config;
  for (const auto& [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (name == "use_environment") {
      if (!PyBool_Check(value.ptr()))
        raise(Error(Code::invalid_argument, "use_environment is True or False"));
      config.use_environment = nb::cast<bool>(value);
    } else {
      must(set_option(config, name, text_of(value, type_of(name))));
    }
  }
  return config;
}

Nanoseconds default_timeout_of(const Engine& engine) {
  Config config;
  for (const Setting& setting : engine.info().settings)
    if (setting.name == "default_timeout") must(set_option(config, setting.name, setting.value));
  return config.default_timeout;
}

void bind_config(nb::module_& module) {
  nb::class_<OptionInfo>(module, "OptionInfo", "Everything about one option of an engine.")
      .def_ro("name", &OptionInfo::name, "Keyword of Engine().")
      .def_ro("variable", &OptionInfo::variable, "Of the environment.")
      .def_ro("group", &OptionInfo::group)
      .def_ro("type", &OptionInfo::type)
      .def_ro("standard", &OptionInfo::standard, "Its default, as text.")
      .def_ro("least", &OptionInfo::least)
      .def_ro("most", &OptionInfo::most)
      .def_ro("unit", &OptionInfo::unit, "What a number counts.")
      .def_ro("doc", &OptionInfo::doc)
      .def("__repr__",
           [](const OptionInfo& self) { return fmt::format("<weft.OptionInfo: {}>", self.name); });
  module.def(
      "options", [] { return std::vector<OptionInfo>(options().begin(), options().end()); },
      "All options of an engine, with their defaults and what they do.");
}

}  // namespace weft::python
