// Files as memory of a side, as the command line says it: "file:/nvme/pages", ",direct" or
// ",buffered" behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>
#include <weft/place.hpp>

namespace weft::perf {

struct FileMemory {
  std::string path;
  bool direct = true;  ///< Past the page cache.
};

/// Nothing for other memory.
std::optional<FileMemory> file_of(const std::string& memory);

/// `invalid_argument` unless it is a file, or memory as tool::check_memory() has it.
Result<void> check_memory(const std::string& memory);

/// Puts those together again that a list was cut into at commas.
void join_files(std::vector<std::string>& memories);

/// Of these, each once.
std::vector<std::string> paths_of(const std::vector<std::string>& memories);

}  // namespace weft::perf
