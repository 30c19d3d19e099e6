// Memory of Python objects, which stays for as long as an engine may touch it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>

namespace weft::python {

/// The memory of an object with the buffer protocol or DLPack, as it lies. Every call needs
/// Python's lock.
class Buffer {
 public:
  /// Of the whole object. Raises what tells why it can't be had.
  static std::shared_ptr<Buffer> of(nanobind::handle object);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  void* address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool read_only() const noexcept { return read_only_; }
  /// Null after release().
  const nanobind::object& object() const noexcept { return object_; }
  /// Nothing touches the memory any more: the object is its owner's again.
  void release() noexcept;

 private:
  explicit Buffer(nanobind::handle object) : object_(nanobind::borrow(object)) {}
  bool take_buffer();
  template <typename Array>
  bool take_array();

  nanobind::object object_;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  bool read_only_ = false;
  std::optional<Py_buffer> view_;
  nanobind::ndarray<nanobind::ro> array_;
};

/// Releases the buffers that engines' threads have let go of. With Python's lock.
void release_forgotten_buffers();

}  // namespace weft::python
