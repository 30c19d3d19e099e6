#include "history.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::chaos {

std::vector<std::string> History::about(std::uint64_t grant, std::uint64_t transfer) const {
  std::vector<std::string> lines;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && lines.size() < told; ++entry) {
    const About& about = entry->about;
    const bool of_a_node = about.grant == 0 && about.transfer == 0;
    const bool of_these =
        (grant != 0 && about.grant == grant) || (transfer != 0 && about.transfer == transfer);
    if (!of_a_node && !of_these) continue;
    const std::chrono::duration<double> since = entry->when - start_;
    lines.push_back(
        fmt::format("{:9.4f} s  step {:6}  {}", since.count(), entry->step, entry->text));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace weft::chaos
