// The pages behind a segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <weft/error.hpp>
#include <weft/memory.hpp>

namespace weft::core {

/// Owns a mapping, or points at memory of the caller's and keeps its owner, if there is one.
class Allocation {
 public:
  static Result<Allocation> make(const Memory& memory);
  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&&) = delete;
  ~Allocation();

  std::byte* address() const noexcept { return static_cast<std::byte*>(address_); }
  std::size_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }
  std::uint64_t file_offset() const noexcept { return file_offset_; }
  /// It must not be written.
  bool read_only() const noexcept { return read_only_; }
  /// Its file can be made smaller: a process that touches pages behind the end is killed.
  bool may_fault() const noexcept;

 private:
  Allocation(void* address, std::size_t size, bool owned, int fd, std::uint64_t file_offset = 0,
             bool read_only = false, std::shared_ptr<void> owner = {})
      : address_(address),
        size_(size),
        owned_(owned),
        fd_(fd),
        file_offset_(file_offset),
        read_only_(read_only),
        owner_(std::move(owner)) {}
  void* address_;
  std::size_t size_;
  bool owned_;
  int fd_;
  std::uint64_t file_offset_;  // of the first byte
  bool read_only_;
  std::shared_ptr<void> owner_;
};

}  // namespace weft::core
