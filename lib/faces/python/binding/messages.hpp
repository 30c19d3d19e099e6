// Signals, messages, and what waits for them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <weft/transfer.hpp>

namespace weft::python {

/// weft.Signal: its payload belongs to the bytes object.
struct PySignal {
  std::uint64_t id = 0;
  nanobind::bytes payload;
};

/// A number, or a PySignal; what is neither is told apart by get(): see Seconds.
class SignalArgument {
 public:
  SignalArgument() = default;
  explicit SignalArgument(nanobind::handle given) : given_(given) {}
  /// Valid as long as the argument.
  Signal get() const;

 private:
  nanobind::handle given_;
};

/// The classes.
void bind_messages(nanobind::module_& module);
/// The methods of Peer: once weft.Peer is there.
void bind_messaging(nanobind::module_& module);

}  // namespace weft::python

namespace nanobind::detail {

template <>
struct type_caster<weft::python::SignalArgument> {
  NB_TYPE_CASTER(weft::python::SignalArgument,
                 union_name(const_name("int"), make_caster<weft::python::PySignal>::Name))

  bool from_python(handle given, std::uint32_t, cleanup_list*) noexcept {
    value = weft::python::SignalArgument(given);
    return true;
  }
};

}  // namespace nanobind::detail
