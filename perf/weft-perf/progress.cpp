#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "units.hpp"

namespace weft::perf {

Progress::Progress(const std::string& when)
    : on_(when == "always" || (when == "auto" && isatty(STDERR_FILENO) == 1)) {}

void Progress::show(const Step& step) {
  if (!on_) return;
  const std::string left =
      step.seconds_left > 0 ? ", " + tool::duration(step.seconds_left) + " left" : "";
  const std::string last =
      step.gigabytes > 0 ? fmt::format(" (before: {:.3f} GB/s)", step.gigabytes) : "";
  constexpr std::size_t width = 20;
  const std::size_t full = step.done * width / step.total;
  fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {} of {}{}, repeat {}: {}{}\x1b[K", "", full, "",
             width - full, step.done + 1, step.total, left, step.repeat + 1, title(*step.point),
             last);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::wipe() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace weft::perf
