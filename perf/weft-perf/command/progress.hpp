// A line on standard error that says where a sweep is.
#pragma once

#include <string>

#include "measure/sweep.hpp"

namespace weft::perf {

class Progress {
 public:
  /// `when`: "auto" (on a terminal), "always" or "never".
  explicit Progress(const std::string& when);
  void show(const Step& step);
  /// So that something else can be printed on a clean line.
  void wipe();

 private:
  const bool on_;
  bool shown_ = false;
};

}  // namespace weft::perf
