#include "common/crew.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace weft::tool {

Result<void> in_parallel(std::uint64_t count, unsigned threads,
                         const std::function<Result<void>(std::uint64_t)>& work,
                         const std::function<Error(Error)>& on_failure) {
  std::mutex mutex;
  std::uint64_t next = 0;
  bool stopped = false;
  std::optional<Error> failure;

  const auto take = [&]() -> std::optional<std::uint64_t> {
    const std::lock_guard lock(mutex);
    if (stopped || next == count) return std::nullopt;
    return next++;
  };
  const auto failed = [&](Error error) {
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(stopped, true)) return;
    }
    failure = on_failure(std::move(error));
  };
  const auto worker = [&] {
    while (const auto number = take())
      if (auto done = work(*number); !done) failed(std::move(done.error()));
  };
  {
    std::vector<std::jthread> crew;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(threads, count); ++i)
      crew.emplace_back(worker);
  }
  if (failure) return fail(std::move(*failure));
  return {};
}

}  // namespace weft::tool
