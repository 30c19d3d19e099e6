// The bytes of device memory: a memory file, which the copies reach through a mapping of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft::cuda_sim {

class Backing {
 public:
  Backing() = default;
  /// Zeroed memory, whose file bears the tag in its name. Throws Failure.
  static Backing create(std::size_t bytes, std::uint64_t tag);
  /// The memory of another process, by the number of its file there. Throws Failure when there is
  /// no such file with the tag.
  static Backing open(int process, int descriptor, std::size_t bytes, std::uint64_t tag);
  Backing(Backing&& other) noexcept { swap(other); }
  Backing& operator=(Backing&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Backing();

  std::byte* data() const noexcept { return data_; }
  int descriptor() const noexcept { return descriptor_; }

  /// Tells all processes that have it open that the owner has freed it; returns whether there is
  /// one.
  bool retire();
  bool retired() const;

 private:
  static Backing map(int descriptor, std::size_t bytes);
  void swap(Backing& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace weft::cuda_sim
