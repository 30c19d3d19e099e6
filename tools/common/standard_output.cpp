#include "common/standard_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weft::tool {

Result<void> finish_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return {};
  return fail(Code::unavailable,
              fmt::format("could not write all to standard output{}{}", errno != 0 ? ": " : "",
                          errno != 0 ? std::strerror(errno) : ""));
}

}  // namespace weft::tool
