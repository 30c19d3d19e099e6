// What goes wrong with files, in words: the path and the system's error.
#pragma once

#include <cstdint>
#include <string>
#include <weft/error.hpp>

namespace weft::core {

/// "'/data/pages': No such file or directory (errno 2)".
Error file_error(const std::string& path, int number);
/// Of a read or write.
Error file_io_error(const std::string& path, int number, bool write);
Error file_cut_off(const std::string& path, std::uint64_t at);

}  // namespace weft::core
