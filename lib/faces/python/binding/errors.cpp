#include "python/binding/errors.hpp"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "python/binding/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

/// What should have been a Result: nanobind would make RuntimeErrors of them.
Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const nb::builtin_exception&) {
    throw;  // a TypeError and the like, which is meant
  } catch (const nb::cast_error&) {
    return Error(Code::invalid_argument, "a value has a type that the call can't use");
  } catch (const std::bad_alloc&) {
    return Error(Code::out_of_memory, "no memory left");
  } catch (const std::system_error& error) {
    return Error(Code::unavailable, error.what());
  } catch (const std::exception& error) {
    return Error(Code::internal, error.what());
  }
}

void translate(const std::exception_ptr& thrown, void*) {
  const nb::object exception = exception_of(error_of(thrown));
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

}  // namespace

nb::object exception_of(const Error& error) {
  const nb::object make = nb::module_::import_("weft._errors").attr("of_code");
  return make(static_cast<int>(error.code()), error.message(), "peer"_a = error.peer(),
              "rail"_a = error.rail(), "operation"_a = error.operation(),
              "fabric_code"_a = error.fabric_code());
}

nb::object exception_of(const std::optional<Error>& error) {
  return error ? exception_of(*error) : nb::none();
}

void raise(const Error& error) {
  const nb::object exception = exception_of(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

void bind_errors() {
  nb::register_exception_translator(&translate);
}

}  // namespace weft::python
