// A list that takes no allocation while it is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace weft::core {

/// The first `few` elements lie in the object itself.
template <typename T, std::size_t few>
class SmallVector {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(std::span<const T> values) {
    for (const T& value : values) push_back(value);
  }

  void push_back(const T& value) {
    if (size_ < few) {
      new (room_ + size_ * sizeof(T)) T(value);
    } else {
      if (size_ == few) many_.assign(begin(), end());
      many_.push_back(value);
    }
    ++size_;
  }
  /// Keeps the first `size` elements.
  void shorten(std::size_t size) {
    if (size_ > few && size <= few) std::copy_n(many_.data(), size, in_room());
    size_ = size;
    if (size > few) many_.resize(size);
  }

  T* begin() noexcept { return size_ <= few ? in_room() : many_.data(); }
  T* end() noexcept { return begin() + size_; }
  const T* begin() const noexcept { return const_cast<SmallVector*>(this)->begin(); }
  const T* end() const noexcept { return begin() + size_; }
  T& front() noexcept { return *begin(); }
  const T& front() const noexcept { return *begin(); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  T* in_room() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }

  alignas(T) std::byte room_[few * sizeof(T)];
  std::vector<T> many_;  // all elements, where they are more
  std::size_t size_ = 0;
};

}  // namespace weft::core
