// The pages behind a segment.
#pragma once

#include <cstddef>
#include <weft/memory.hpp>

namespace weft::core {

/// Owns a mapping, or only points at memory of the caller's.
class Allocation {
 public:
  static Result<Allocation> make(const Memory& memory);
  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&&) = delete;
  ~Allocation();

  std::byte* address() const noexcept { return static_cast<std::byte*>(address_); }
  std::size_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }

 private:
  Allocation(void* address, std::size_t size, bool owned, int fd)
      : address_(address), size_(size), owned_(owned), fd_(fd) {}
  void* address_;
  std::size_t size_;
  bool owned_;
  int fd_;
};

}  // namespace weft::core
