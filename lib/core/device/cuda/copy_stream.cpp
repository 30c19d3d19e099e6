#include "device/cuda/copy_stream.hpp"

#include <tuple>
#include <utility>

namespace weft::core::cuda {

Result<std::unique_ptr<CopyQueue>> CopyStream::open(const Gpu& gpu) {
  const InContext here(gpu);
  if (here.status() != success) return fail(gpu.driver().error("cuCtxPushCurrent", here.status()));
  // Not ordered with the default stream, on which the application's kernels may run.
  Stream stream = nullptr;
  if (const Status status = gpu.driver().stream_create(&stream, stream_non_blocking);
      status != success)
    return fail(gpu.driver().error("cuStreamCreate", status));
  return std::unique_ptr<CopyQueue>(new CopyStream(gpu, stream));
}

/// Both calls return at once, and what is under way goes on (CUDA driver API, cuStreamDestroy and
/// cuEventDestroy).
CopyStream::~CopyStream() {
  const InContext here(gpu_);
  for (const Event mark : marks_) gpu_.driver().event_destroy(mark);
  for (const Event mark : free_) gpu_.driver().event_destroy(mark);
  gpu_.driver().stream_destroy(stream_);
}

tl::unexpected<Error> CopyStream::broken(const char* symbol, Status status) {
  broken_ = gpu_.driver().error(symbol, status);
  return fail(*broken_);
}

Result<Event> CopyStream::take_event() {
  Event event = nullptr;
  if (!free_.empty()) {
    event = free_.back();
    free_.pop_back();
    return event;
  }
  const Status status = gpu_.driver().event_create(&event, event_disable_timing);
  if (status != success) return fail(gpu_.driver().error("cuEventCreate", status));
  return event;
}

CopyQueue::Begun CopyStream::copy(std::span<const Copy> copies, Priority) {
  Begun begun;
  begun.error = broken_;
  if (broken_) return begun;
  const Driver& driver = gpu_.driver();
  const InContext here(gpu_);
  if (here.status() != success) {
    begun.error = broken("cuCtxPushCurrent", here.status()).value();
    return begun;
  }
  auto mark = take_event();
  if (!mark) {
    begun.error = std::move(mark.error());
    return begun;
  }
  for (const auto& [to, from, bytes] : copies) {
    const auto target = reinterpret_cast<Address>(to), source = reinterpret_cast<Address>(from);
    if (const Status status = driver.copy_async(target, source, bytes, stream_);
        status != success) {
      begun.error = driver.error("cuMemcpyAsync", status);
      break;
    }
    ++begun.copies;
  }
  if (begun.copies == 0) {
    free_.push_back(*mark);
    return begun;
  }
  marks_.push_back(*mark);
  // The copies are under way, and without their mark their end can't be seen.
  if (const Status status = driver.event_record(*mark, stream_); status != success)
    std::ignore = broken("cuEventRecord", status);
  begun.number = ++begun_;
  return begun;
}

Result<std::uint64_t> CopyStream::ended() {
  if (broken_) return fail(*broken_);
  if (marks_.empty()) return begun_;
  const InContext here(gpu_);
  while (!marks_.empty()) {
    const Status status = gpu_.driver().event_query(marks_.front());
    if (status == not_ready) break;
    if (status != success) return broken("cuEventQuery", status);
    free_.push_back(marks_.front());
    marks_.pop_front();
  }
  return begun_ - marks_.size();
}

}  // namespace weft::core::cuda
