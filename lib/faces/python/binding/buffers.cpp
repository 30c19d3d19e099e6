#include "python/binding/buffers.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/text.hpp"

namespace nb = nanobind;

namespace weft::python {
namespace {

/// Those that threads without Python's lock have let go of: one that pushed never waits, and no
/// thread of a forked child can have stopped in the middle.
struct Forgotten {
  Buffer* buffer;
  Forgotten* next;
};
std::atomic<Forgotten*> forgotten{nullptr};

int release_forgotten(void*) {
  release_forgotten_buffers();
  return 0;
}

/// From any thread, with or without the lock. Python's main thread does the rest, or the next call
/// of Weft's.
void forget(Buffer* buffer) {
  Forgotten* first = forgotten.load();
  auto* const one = new Forgotten{buffer, nullptr};
  do {
    one->next = first;
  } while (!forgotten.compare_exchange_weak(first, one));
  if (first == nullptr) run_on_main_thread(&release_forgotten);
}

std::string type_of(nb::handle object) {
  return nb::type_name(object.type()).c_str();
}

[[noreturn]] void refuse(nb::handle object, const char* why) {
  raise(Error(Code::invalid_argument, fmt::format("{}: {}", type_of(object), why)));
}

constexpr const char* has_no_values = "its elements are pointers of this process, and no values";
constexpr const char* has_gaps =
    "its elements do not lie one after the other; make it contiguous first "
    "(numpy.ascontiguousarray, Tensor.contiguous)";

/// By a format of struct and PEP 3118, in which names stand between colons.
bool has_pointers(const char* format) {
  bool in_name = false;
  for (; format != nullptr && *format != '\0'; ++format) {
    if (*format == ':') in_name = !in_name;
    // Those of ctypes among them: z and Z are strings, but Zf, Zd and Zg complex numbers.
    const bool complex = *format == 'Z' && format[1] != '\0' && std::strchr("fdg", format[1]);
    if (!in_name && !complex && std::strchr("OP&XzZ", *format) != nullptr) return true;
  }
  return false;
}

bool is_dense(const nb::ndarray<nb::ro>& array, bool last_first) {
  std::int64_t expected = 1;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    const std::size_t axis = last_first ? array.ndim() - 1 - i : i;
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(axis));
  }
  return true;
}

/// Host memory, and what CUDA's driver knows.
bool is_known(int device) {
  return device == nb::device::cpu::value || device == nb::device::cuda::value ||
         device == nb::device::cuda_host::value || device == nb::device::cuda_managed::value;
}

}  // namespace

Anchor::Anchor(nb::handle object, std::string name)
    : object_(nb::borrow(object)), name_(std::move(name)) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    address_ = object.attr("data_ptr");
    bytes_ = object.attr("untyped_storage")().attr("nbytes");
  }
  was_ = extent();
}

Anchor::Extent Anchor::extent() const noexcept {
  Extent now;
  try {
    if (address_.is_valid()) {
      now.address = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(address_()));
      now.bytes = nb::cast<std::size_t>(bytes_());
    } else {
      Py_buffer view;
      if (PyObject_GetBuffer(object_.ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
      now = {view.buf, static_cast<std::size_t>(view.len)};
      PyBuffer_Release(&view);
    }
  } catch (const std::exception&) {
    return {};  // It has none any more.
  }
  return now;
}

void Anchor::check() const {
  if (extent() == was_) return;
  raise(Error(Code::invalid_argument,
              fmt::format("{}: its memory is not where it was when it became a segment, which is "
                          "still of that place: close the segment and add the object again",
                          name_)));
}

std::shared_ptr<Buffer> Buffer::of(nb::handle object) {
  release_forgotten_buffers();
  const std::shared_ptr<Buffer> buffer(new Buffer(object), &forget);
  buffer->hold_ = nb::module_::import_("weft._memory").attr("hold")(object);
  nb::object memory = nb::borrow(object);
  if (!buffer->hold_.is_none()) {
    memory = buffer->hold_.attr("memory");
    buffer->anchor_.emplace(buffer->hold_.attr("root"), type_of(object));
  }
  // torch's and cupy's have DLPack alone; some types of numpy's elements have no buffer.
  if (buffer->take_buffer(memory) || buffer->take_array<nb::ndarray<>>(memory) ||
      buffer->take_array<nb::ndarray<nb::ro>>(memory))
    return buffer;
  refuse(object, "it gives its memory neither by the buffer protocol nor by DLPack");
}

bool Buffer::take_buffer(nb::handle memory) {
  if (PyObject_CheckBuffer(memory.ptr()) == 0) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(memory.ptr(), &view, PyBUF_FULL) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(memory.ptr(), &view, PyBUF_FULL_RO) != 0) {
      PyErr_Clear();
      return false;
    }
  }
  view_ = view;
  if (has_pointers(view.format)) refuse(object_, has_no_values);
  if (PyBuffer_IsContiguous(&view, 'A') == 0) refuse(object_, has_gaps);
  address_ = view.buf;
  bytes_ = static_cast<std::size_t>(view.len);
  read_only_ = view.readonly != 0;
  return true;
}

template <typename Array>
bool Buffer::take_array(nb::handle memory) {
  Array array;
  if (!nb::try_cast(memory, array, false)) return false;
  array_ = nb::ndarray<nb::ro>(array);
  if (!is_known(array_.device_type()))
    raise(Error(Code::unsupported, fmt::format("{}: memory of DLPack's device type {}",
                                               type_of(object_), array_.device_type())));
  if (!is_dense(array_, true) && !is_dense(array_, false)) refuse(object_, has_gaps);
  address_ = const_cast<void*>(array_.data());
  bytes_ = array_.nbytes();
  read_only_ = Array::ReadOnly;
  return true;
}

void Buffer::check() const {
  const auto held = anchor_;  // Python's code may run, and other threads with it.
  if (held) held->check();
}

void Buffer::release() noexcept {
  if (view_) PyBuffer_Release(&*view_);
  view_.reset();
  array_ = {};
  anchor_.reset();
  hold_.reset();
  object_.reset();
}

BytesArgument::BytesArgument(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0)
    throw nb::python_error();
  if (!has_pointers(view_.format)) return;
  PyBuffer_Release(&view_);
  refuse(object, has_no_values);
}

void release_forgotten_buffers() {
  Forgotten* one = forgotten.exchange(nullptr);
  while (one != nullptr) {
    delete one->buffer;
    delete std::exchange(one, one->next);
  }
}

}  // namespace weft::python
