// The warnings and errors that Weft logs.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>
#include <weft/log.hpp>

namespace weft::test {

/// Those of the process, for as long as this lives. From any thread.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      if (level >= LogLevel::warning) lines_.emplace_back(line);
    });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  /// How many say that.
  long about(std::string_view words) const {
    const auto all = lines();
    return std::count_if(all.begin(), all.end(),
                         [&](const std::string& line) { return line.find(words) != line.npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace weft::test
