#include "common/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace weft::tool {
namespace {

/// Why something could not be printed; later attempts forget it.
int first_failure = 0;

/// Whether all is out.
bool flush() {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed && first_failure == 0) first_failure = errno;
  return flushed && !failed_before;
}

/// Of the library's options those that errors name, and that the programs have as flags.
void name_flags(std::string& text) {
  for (const std::string_view option : {"allow_unauthenticated_network", "secret_file"}) {
    const std::size_t at = text.find(option);
    if (at == text.npos || (at > 0 && text[at - 1] != ' ')) continue;  // a part of a name
    std::string flag = fmt::format("--{}", option);
    std::replace(flag.begin(), flag.end(), '_', '-');
    text.replace(at, option.size(), flag);
  }
}

}  // namespace

std::string sentence(const Error& error) {
  std::string text = error.message();
  name_flags(text);
  if (!error.peer().empty() && text.find(error.peer()) == std::string::npos)
    text += fmt::format(" (peer {})", error.peer());
  if (!error.rail().empty() && text.find(error.rail()) == std::string::npos)
    text += fmt::format(" (rail {})", error.rail());
  return text;
}

void print(const std::string& text) {
  const bool taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!taken && first_failure == 0) first_failure = errno;
  flush();
}

void complain(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Result<void> finish_standard_output() {
  if (flush()) return {};
  return fail(
      Code::unavailable,
      fmt::format("could not write all to standard output{}{}", first_failure != 0 ? ": " : "",
                  first_failure != 0 ? std::strerror(first_failure) : ""));
}

}  // namespace weft::tool
