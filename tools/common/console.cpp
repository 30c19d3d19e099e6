#include "common/console.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weft::tool {
namespace {

/// Why something could not be printed; later attempts forget it.
int first_failure = 0;

/// Whether all is out.
bool flush() {
  errno = 0;
  const bool failed_before = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (first_failure == 0) first_failure = errno;
  return flushed && !failed_before;
}

}  // namespace

std::string sentence(const Error& error) {
  std::string text = error.message();
  if (!error.peer().empty() && text.find(error.peer()) == std::string::npos)
    text += fmt::format(" (peer {})", error.peer());
  if (!error.rail().empty() && text.find(error.rail()) == std::string::npos)
    text += fmt::format(" (rail {})", error.rail());
  return text;
}

void print(const std::string& text) {
  fmt::print("{}", text);
  flush();
}

Result<void> finish_standard_output() {
  if (flush()) return {};
  return fail(
      Code::unavailable,
      fmt::format("could not write all to standard output{}{}", first_failure != 0 ? ": " : "",
                  first_failure != 0 ? std::strerror(first_failure) : ""));
}

}  // namespace weft::tool
