// Signals, messages, and what waits for them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <variant>
#include <weft/transfer.hpp>

namespace weft::python {

/// weft.Signal: its payload belongs to the bytes object.
struct PySignal {
  std::uint64_t id = 0;
  nanobind::bytes payload;
};

/// Valid as long as the argument.
Signal signal_of(const std::variant<std::uint64_t, PySignal>& signal);

/// The classes.
void bind_messages(nanobind::module_& module);
/// The methods of Engine: once weft.Engine is there.
void bind_messaging(nanobind::module_& module);

}  // namespace weft::python
