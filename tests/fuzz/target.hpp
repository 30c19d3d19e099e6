// What a fuzz target defines, and what several of them need. Each target looks at one way into an
// engine, and is linked with libFuzzer (tests/fuzz/run), or with replay.cpp as a usual test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/place.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weft::fuzz {

/// Ends the program, which is a finding, unless `holds`.
void require(bool holds, const char* what);

inline Bytes bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A file in memory, for what is read by path.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(std::string_view contents);
  std::string path() const;

 private:
  int descriptor_;
};

}  // namespace weft::fuzz
