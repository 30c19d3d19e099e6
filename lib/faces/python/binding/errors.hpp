// Errors as exceptions: weft._errors has a class for each code.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>
#include <weft/error.hpp>

namespace weft::python {

/// The exception, not raised.
nanobind::object exception_of(const Error& error);
/// None for no error.
nanobind::object exception_of(const std::optional<Error>& error);

[[noreturn]] void raise(const Error& error);

/// From here on a C++ exception that leaves a call is a weft.Error too.
void bind_errors();

/// What it holds, or the exception.
template <typename T>
T must(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace weft::python
