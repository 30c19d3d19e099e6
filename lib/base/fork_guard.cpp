#include "base/fork_guard.hpp"

#include <pthread.h>

#include <atomic>

namespace weft::core {
namespace {

std::atomic<std::uint64_t> generation{0};

const int registered =
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t fork_generation() noexcept {
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

Error forked_error() {
  return Error(Code::forked,
               "this engine was opened by the parent process; after fork() the child must open "
               "its own");
}

}  // namespace weft::core
