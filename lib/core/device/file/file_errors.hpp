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
/// Of a read that came to the end of the open file, from byte `at` on.
Error file_cut_off(const std::string& path, int fd, std::uint64_t at);

}  // namespace weft::core
