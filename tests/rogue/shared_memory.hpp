// Memory that a test and its child processes all map: the test looks at every byte of it, even if
// the process that an attack was aimed at has ended.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace weft::test {

class SharedMemory {
 public:
  /// New and zeroed.
  explicit SharedMemory(std::size_t bytes);
  /// That of another process, by its path().
  explicit SharedMemory(const std::string& path);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  int fd() const noexcept { return fd_; }
  /// Where other processes find it, for as long as this object lives.
  std::string path() const;

 private:
  void map(std::size_t bytes);
  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace weft::test
