// Pages of the system, with an owner.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

namespace weft::tool {

/// Pages of this process's own, asked for as Weft asks for those of Memory::own: what is compared
/// with it has no smaller ones. They are there once they are touched.
class Pages {
 public:
  /// Empty if there is no memory.
  explicit Pages(std::size_t bytes) {
    void* const start =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    ::madvise(start, bytes, MADV_HUGEPAGE);
    span_ = {static_cast<std::byte*>(start), bytes};
  }
  Pages(Pages&& other) noexcept : span_(std::exchange(other.span_, {})) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(span_, other.span_);
    return *this;
  }
  ~Pages() {
    if (!span_.empty()) ::munmap(span_.data(), span_.size());
  }

  /// They stay for as long as the process lives: something may still touch them.
  void abandon() noexcept { span_ = {}; }

  bool empty() const noexcept { return span_.empty(); }
  std::byte* data() const noexcept { return span_.data(); }
  std::span<std::byte> span() const noexcept { return span_; }

 private:
  std::span<std::byte> span_;
};

}  // namespace weft::tool
