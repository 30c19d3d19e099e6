// Memory of Python objects, which stays for as long as an engine may touch it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <weft/place.hpp>

namespace weft::python {

/// An object whose memory can go elsewhere while a segment has it: a tensor of torch, an array of
/// numpy. Every call needs Python's lock.
class Anchor {
 public:
  /// `name` is for errors.
  Anchor(nanobind::handle object, std::string name);
  const std::string& name() const noexcept { return name_; }
  /// Raises if the object's memory is not where it was, or is not as large.
  void check() const;

 private:
  struct Extent {
    void* address = nullptr;
    std::size_t bytes = 0;
    bool operator==(const Extent&) const = default;
  };
  Extent extent() const noexcept;

  nanobind::object object_;
  nanobind::object address_, bytes_;  // a tensor's, to be called; null: by the buffer protocol
  std::string name_;
  Extent was_;
};

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
  /// Raises if the memory is not the object's any more.
  void check() const;
  /// Nothing touches the memory any more: the object is its owner's again.
  void release() noexcept;

 private:
  explicit Buffer(nanobind::handle object) : object_(nanobind::borrow(object)) {}
  bool take_buffer(nanobind::handle memory);
  template <typename Array>
  bool take_array(nanobind::handle memory);

  nanobind::object object_;
  nanobind::object hold_;  // weft._memory.Hold, or None
  std::optional<Anchor> anchor_;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  bool read_only_ = false;
  std::optional<Py_buffer> view_;
  nanobind::ndarray<nanobind::ro> array_;
};

/// The bytes of an object with a buffer, for the time of a call.
class BytesArgument {
 public:
  explicit BytesArgument(nanobind::handle object);
  ~BytesArgument() { PyBuffer_Release(&view_); }
  BytesArgument(const BytesArgument&) = delete;
  BytesArgument& operator=(const BytesArgument&) = delete;
  Bytes bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

/// Releases the buffers that engines' threads have let go of. With Python's lock.
void release_forgotten_buffers();

}  // namespace weft::python
