// A TOML file of options.
#pragma once

#include <map>
#include <string>
#include <weft/error.hpp>

namespace weft::core {

struct FileEntry {
  std::string text;   // as it would be written in the environment
  std::string place;  // "weft.toml:3"
};
/// By name.
using FileText = std::map<std::string, FileEntry>;

Result<FileText> read_config_file(const std::string& path);

}  // namespace weft::core
