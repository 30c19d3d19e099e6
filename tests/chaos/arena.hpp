// The memory of one life of a node: the director and the node both see it, so that it can be looked
// at whatever has become of the node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::chaos {

class Arena {
 public:
  /// Fresh memory. Throws std::system_error.
  explicit Arena(std::uint64_t bytes);
  /// That of another process, by the path of its descriptor.
  Arena(const std::string& path, std::uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Of the memory, which can't shrink.
  int fd() const noexcept { return fd_; }
  /// Under which other processes of this user find it.
  std::string path() const;

 private:
  void map();
  const std::uint64_t bytes_;
  int fd_ = -1;
  std::byte* data_ = nullptr;
};

}  // namespace weft::chaos
