// Memory that the device and a process that uses it both see.
#pragma once

#include <cstddef>
#include <utility>

namespace weft::efa_sim {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// A mapping of a memory file.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// New memory, zeroed, which can't shrink. Throws std::system_error.
  static SharedMemory create(std::size_t bytes);
  /// The memory of a descriptor, which must have these many bytes. Throws std::system_error.
  static SharedMemory map(Descriptor file, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SharedMemory();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return file_.get(); }

 private:
  void swap(SharedMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(file_, other.file_);
  }
  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::efa_sim
