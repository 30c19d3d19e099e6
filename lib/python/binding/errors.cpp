#include "python/binding/errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {

nb::object exception_of(const Error& error) {
  const nb::object make = nb::module_::import_("weft._errors").attr("of_code");
  const auto text = [](const std::string& value) { return nb::str(value.data(), value.size()); };
  return make(nb::int_(static_cast<int>(error.code())), text(error.message()),
              "peer"_a = text(error.peer()), "rail"_a = text(error.rail()),
              "operation"_a = text(error.operation()),
              "fabric_code"_a = nb::int_(error.fabric_code()));
}

nb::object exception_of(const std::optional<Error>& error) {
  return error ? exception_of(*error) : nb::none();
}

void raise(const Error& error) {
  const nb::object exception = exception_of(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace weft::python
