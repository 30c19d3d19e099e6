// What has to outlive everything.
#pragma once

#include <list>
#include <mutex>
#include <utility>

namespace weft::core {

/// Keeps an object to the end of the process, and never destroys it: something that can't be
/// stopped may still use it. From any thread.
template <typename T>
void leak(T object) {
  static std::mutex mutex;
  static auto& kept = *new std::list<T>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace weft::core
