// Objects that are leaked on purpose: something that can't be stopped may still use them.
#pragma once

#include <list>
#include <utility>

#include "base/sync.hpp"

namespace weft::core {

/// Keeps an object to the end of the process, and never destroys it: something that can't be
/// stopped may still use it. From any thread.
template <typename T>
void leak(T object) {
  static Mutex mutex;
  static auto& kept = *new std::list<T>;
  const Lock lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace weft::core
