#include "command/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/console.hpp"
#include "common/units.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

/// Of a longer line, what went on below would stay.
std::size_t room_in_line() {
  winsize terminal{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0;
  return known ? terminal.ws_col - 1U : std::string::npos;
}

}  // namespace

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
  const std::string line =
      fmt::format("[{:#<{}}{:.<{}}] {} of {}{}, repeat {}: {}{}", "", full, "", width - full,
                  step.done + 1, step.total, left, step.repeat + 1, title(*step.point), last);
  tool::complain(fmt::format("\r{}\x1b[K", line.substr(0, room_in_line())));
  shown_ = true;
}

void Progress::wipe() {
  if (shown_) tool::complain("\r\x1b[K");
  shown_ = false;
}

}  // namespace weft::perf
