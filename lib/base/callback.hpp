// Knows whether the thread is inside one of the application's callbacks, where it must not wait.
#pragma once

namespace weft::core {

/// For as long as a callback runs.
class InCallback {
 public:
  InCallback() noexcept { ++depth; }
  ~InCallback() { --depth; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static bool now() noexcept { return depth > 0; }

 private:
  static inline thread_local int depth = 0;
};

}  // namespace weft::core
