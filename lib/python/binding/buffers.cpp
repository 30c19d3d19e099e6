#include "python/binding/buffers.hpp"

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"

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

constexpr const char* has_gaps =
    "its elements do not lie one after the other; make it contiguous first "
    "(numpy.ascontiguousarray, Tensor.contiguous)";

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

std::shared_ptr<Buffer> Buffer::of(nb::handle object) {
  release_forgotten_buffers();
  const std::shared_ptr<Buffer> buffer(new Buffer(object), &forget);
  // torch's and cupy's have DLPack alone; some types of numpy's elements have no buffer.
  if (buffer->take_buffer() || buffer->take_array<nb::ndarray<>>() ||
      buffer->take_array<nb::ndarray<nb::ro>>())
    return buffer;
  refuse(object,
         "it gives its memory neither by the buffer protocol nor by DLPack (a tensor that requires "
         "gradients: pass tensor.detach())");
}

bool Buffer::take_buffer() {
  if (PyObject_CheckBuffer(object_.ptr()) == 0) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(object_.ptr(), &view, PyBUF_FULL) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object_.ptr(), &view, PyBUF_FULL_RO) != 0) {
      PyErr_Clear();
      return false;
    }
  }
  view_ = view;
  if (PyBuffer_IsContiguous(&view, 'A') == 0) refuse(object_, has_gaps);
  address_ = view.buf;
  bytes_ = static_cast<std::size_t>(view.len);
  read_only_ = view.readonly != 0;
  return true;
}

template <typename Array>
bool Buffer::take_array() {
  Array array;
  if (!nb::try_cast(object_, array, false)) return false;
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

void Buffer::release() noexcept {
  if (view_) PyBuffer_Release(&*view_);
  view_.reset();
  array_ = {};
  object_.reset();
}

void release_forgotten_buffers() {
  Forgotten* one = forgotten.exchange(nullptr);
  while (one != nullptr) {
    delete one->buffer;
    delete std::exchange(one, one->next);
  }
}

}  // namespace weft::python
