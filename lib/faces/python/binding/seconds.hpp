// Times that Python gives.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <type_traits>

namespace weft::python {

/// Seconds; None for a default that the function names. What is neither is told apart when the
/// value is asked for: as an argument that does not fit, Python would see all of the signature.
class Seconds {
 public:
  Seconds() = default;
  Seconds(double seconds) : given_(true), seconds_(seconds) {}  // NOLINT: as optional<double>
  static Seconds of(nanobind::handle object) noexcept {
    Seconds made;
    made.given_ = !object.is_none();
    if (!made.given_) return made;
    made.seconds_ = PyFloat_AsDouble(object.ptr());
    made.wrong_ = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    return made;
  }

  explicit operator bool() const noexcept { return given_; }
  double operator*() const {
    if (wrong_)
      throw nanobind::type_error(
          "a time is a number of seconds, or None (of a timedelta: total_seconds())");
    return seconds_;
  }

 private:
  bool given_ = false, wrong_ = false;
  double seconds_ = 0;
};

}  // namespace weft::python

namespace nanobind::detail {

template <>
struct has_arg_defaults<weft::python::Seconds> : std::true_type {};  // It takes None.

template <>
struct type_caster<weft::python::Seconds> {
  NB_TYPE_CASTER(weft::python::Seconds, const_name("float"))

  bool from_python(handle given, std::uint32_t, cleanup_list*) noexcept {
    value = weft::python::Seconds::of(given);
    return true;
  }
};

}  // namespace nanobind::detail
