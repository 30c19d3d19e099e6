#include "python/binding/completion.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace weft::python {

Waker::Waker() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Waker::push(std::uint64_t number) {
  const core::Lock lock(mutex_);
  numbers_.push_back(number);
  if (numbers_.size() > 1) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);
}

std::vector<std::uint64_t> Waker::take() {
  const core::Lock lock(mutex_);
  std::uint64_t value = 0;
  [[maybe_unused]] const ssize_t drained = read(event_.get(), &value, sizeof value);
  return std::exchange(numbers_, {});
}

void Completion::end() {
  const core::Lock lock(mutex_);
  ended_ = true;
  for (const auto& [waker, number] : watchers_) waker->push(number);
  watchers_.clear();
}

bool Completion::watch(std::shared_ptr<Waker> waker, std::uint64_t number) {
  const core::Lock lock(mutex_);
  if (ended_) return false;
  watchers_.emplace_back(std::move(waker), number);
  return true;
}

void Completion::unwatch(const std::shared_ptr<Waker>& waker, std::uint64_t number) {
  const core::Lock lock(mutex_);
  std::erase(watchers_, std::pair(waker, number));
}

}  // namespace weft::python
