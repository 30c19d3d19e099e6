// Text of peers, files and the system as Python's str, and back. In place of nanobind's
// stl/string.h and stl/string_view.h, which no file here includes: what is not UTF-8 stays as
// surrogates, as in os.fsdecode(), and a name that Python gives back is the same bytes again.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace weft::python {

constexpr const char* bytes_that_are_no_text = "surrogateescape";

inline nanobind::handle str_of(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              bytes_that_are_no_text);
}

/// Its bytes, which `encoded` or the str keeps; null if it is none. Never leaves an error of
/// Python.
inline std::string_view bytes_of_str(nanobind::handle given, nanobind::object& encoded) noexcept {
  if (PyUnicode_Check(given.ptr()) == 0) return {};
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(given.ptr(), &size); text != nullptr)
    return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  encoded =
      nanobind::steal(PyUnicode_AsEncodedString(given.ptr(), "utf-8", bytes_that_are_no_text));
  if (encoded.is_valid())
    return {PyBytes_AsString(encoded.ptr()), static_cast<std::size_t>(PyBytes_Size(encoded.ptr()))};
  PyErr_Clear();
  return {};
}

}  // namespace weft::python

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle given, std::uint32_t, cleanup_list*) noexcept {
    object encoded;
    const std::string_view bytes = weft::python::bytes_of_str(given, encoded);
    value = bytes;
    return bytes.data() != nullptr;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return weft::python::str_of(text);
  }
};

template <>
struct type_caster<std::string_view> {
  NB_TYPE_CASTER(std::string_view, const_name("str"))

  bool from_python(handle given, std::uint32_t, cleanup_list*) noexcept {
    value = weft::python::bytes_of_str(given, encoded);
    return value.data() != nullptr;
  }
  static handle from_cpp(std::string_view text, rv_policy, cleanup_list*) noexcept {
    return weft::python::str_of(text);
  }

 private:
  object encoded;
};

}  // namespace nanobind::detail
