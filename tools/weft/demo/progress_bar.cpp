#include "demo/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "common/console.hpp"
#include "common/units.hpp"

namespace weft::tool {
namespace {

constexpr auto before_first = std::chrono::seconds(1);
constexpr auto between = std::chrono::milliseconds(100);
constexpr std::size_t width = 32;

}  // namespace

ProgressBar::ProgressBar(std::uint64_t total_bytes, const std::string& when)
    : total_(std::max<std::uint64_t>(total_bytes, 1)),
      on_(when == "always" || (when == "auto" && isatty(STDERR_FILENO) == 1)) {}

ProgressBar::~ProgressBar() {
  // Wipes the line, so that the table starts on a clean one.
  if (shown_) complain("\r\x1b[K");
}

void ProgressBar::add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_ += bytes;
  const auto now = Clock::now();
  if (!on_ || now - start_ < before_first || now - drawn_ < between) return;
  drawn_ = now;
  draw(now);
}

void ProgressBar::draw(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double share = static_cast<double>(std::min(done_, total_)) / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  complain(fmt::format("\r[{:<{}}] {:3.0f} %  {} of {}  {:.2f} GB/s\x1b[K",
                       std::string(filled, '#'), width, 100 * share, binary_bytes(done_),
                       binary_bytes(total_), static_cast<double>(done_) / seconds / 1e9));
  shown_ = true;
}

}  // namespace weft::tool
