// A bar on standard error while a long run goes on.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <weft/deadline.hpp>

namespace weft::tool {

/// Shows how many bytes of all have moved. Appears only once a run has lasted a second.
class ProgressBar {
 public:
  /// `when`: "auto" (on a terminal), "always" or "never".
  ProgressBar(std::uint64_t total_bytes, const std::string& when);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// From any thread.
  void add(std::uint64_t bytes);

 private:
  void draw(Clock::time_point now);

  const std::uint64_t total_;
  const bool on_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  Clock::time_point drawn_ = start_;
  bool shown_ = false;
};

}  // namespace weft::tool
