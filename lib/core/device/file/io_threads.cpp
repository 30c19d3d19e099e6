// Files by threads, where there is no io_uring.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <tuple>
#include <vector>

#include "base/sync.hpp"
#include "base/thread.hpp"
#include "device/file/io_channel.hpp"

namespace weft::core {
namespace {

// Guess: enough to keep a drive busy with large pages.
constexpr std::size_t most_threads = 8;
// A thread that had nothing to do for so long ends.
constexpr auto longest_idle = std::chrono::seconds(10);

/// Outlives the channel while a thread is in a call.
struct Shared {
  Mutex mutex;
  Condition filled, ended;
  std::deque<Io*> waiting WEFT_GUARDED_BY(mutex);
  std::vector<Io*> over WEFT_GUARDED_BY(mutex);
  std::size_t idle WEFT_GUARDED_BY(mutex) = 0;
  std::size_t threads WEFT_GUARDED_BY(mutex) = 0;
  bool closed WEFT_GUARDED_BY(mutex) = false;
};

std::int64_t carry_out(const Io& io) {
  const iovec part{io.memory, io.bytes};
  const auto at = static_cast<off_t>(io.at);
  const ssize_t done = io.write ? pwritev2(io.fd, &part, 1, at, io.durable ? RWF_DSYNC : 0)
                                : preadv2(io.fd, &part, 1, at, 0);
  return done < 0 ? -errno : done;
}

void serve(Shared& shared) {
  while (true) {
    Io* io = nullptr;
    {
      const Lock lock(shared.mutex);
      ++shared.idle;
      const bool came = shared.filled.wait(
          shared.mutex, Deadline::in(longest_idle),
          [&]() WEFT_REQUIRES(shared.mutex) { return shared.closed || !shared.waiting.empty(); });
      --shared.idle;
      if (!came || shared.closed) {
        --shared.threads;
        return;
      }
      io = shared.waiting.front();
      shared.waiting.pop_front();
    }
    const std::int64_t result = carry_out(*io);
    const Lock lock(shared.mutex);
    io->result = result;
    shared.over.push_back(io);
    shared.ended.notify_one();
  }
}

class Threads final : public IoChannel {
 public:
  ~Threads() override {
    const Lock lock(shared_->mutex);
    shared_->closed = true;
    shared_->filled.notify_all();
  }
  bool begin(Io& io) override {
    const Lock lock(shared_->mutex);
    const bool more = shared_->idle <= shared_->waiting.size();
    const SignalsBlocked blocked;
    if (more && shared_->threads < most_threads &&
        start_detached([shared = shared_] { serve(*shared); }))
      ++shared_->threads;
    if (shared_->threads == 0) return false;
    shared_->waiting.push_back(&io);
    shared_->filled.notify_one();
    return true;
  }
  std::size_t ended(std::span<Io*> into) override {
    const Lock lock(shared_->mutex);
    const std::size_t count = std::min(into.size(), shared_->over.size());
    const auto end = shared_->over.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(shared_->over.begin(), end, into.begin());
    shared_->over.erase(shared_->over.begin(), end);
    return count;
  }
  void wait(Deadline deadline) override {
    const Lock lock(shared_->mutex);
    std::ignore =
        shared_->ended.wait(shared_->mutex, deadline,
                            [&]() WEFT_REQUIRES(shared_->mutex) { return !shared_->over.empty(); });
  }

 private:
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace

std::unique_ptr<IoChannel> open_io_threads() {
  return std::make_unique<Threads>();
}

}  // namespace weft::core
