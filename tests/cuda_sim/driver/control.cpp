// The control interface; interface/control.hpp says what each does.
#include "interface/control.hpp"

#include <algorithm>
#include <chrono>

#include "driver/entry.hpp"

namespace weft::cuda_sim {

namespace {

// A test that names what is not there ends with an exception that nobody catches.
template <typename Use>
void use_stream(Stream handle, const Use& use) {
  Lock lock(simulator().mutex);
  if (handle == nullptr || handle == stream_legacy || handle == stream_per_thread) {
    use(stream_of(handle, lock));
    return;
  }
  for (const StreamPtr& stream : simulator().streams)
    if (stream.get() == handle) return use(*stream);
  fail(invalid_handle);
}

template <typename Use>
void use_created_streams(const Use& use) {
  for (const StreamPtr& stream : simulator().streams)
    if (stream->role == Role::created) use(*stream);
}

}  // namespace

WEFT_CUDA_EXPORT void weft_cuda_sim_hold(Stream stream) {
  use_stream(stream, [](StreamObject& each) { each.hold(); });
}

WEFT_CUDA_EXPORT void weft_cuda_sim_release(Stream stream) {
  use_stream(stream, [](StreamObject& each) { each.release(); });
}

WEFT_CUDA_EXPORT void weft_cuda_sim_hold_all() {
  const Lock lock(simulator().mutex);
  simulator().hold_all = true;
  use_created_streams([](StreamObject& each) { each.hold(); });
}

WEFT_CUDA_EXPORT void weft_cuda_sim_release_all() {
  const Lock lock(simulator().mutex);
  simulator().hold_all = false;
  use_created_streams([](StreamObject& each) { each.release(); });
}

WEFT_CUDA_EXPORT void weft_cuda_sim_step(Stream stream, unsigned count) {
  use_stream(stream, [&](StreamObject& each) { each.step(count); });
}

WEFT_CUDA_EXPORT void weft_cuda_sim_delay(std::uint64_t seed, unsigned microseconds) {
  const Lock lock(simulator().mutex);
  simulator().delay = {seed, microseconds};
}

WEFT_CUDA_EXPORT void weft_cuda_sim_fail(const char* name, unsigned nth, Status status) {
  const Lock lock(simulator().mutex);
  simulator().faults.plan(name, nth, status);
}

WEFT_CUDA_EXPORT void weft_cuda_sim_block(const char* name, bool block) {
  const Lock lock(simulator().mutex);
  simulator().faults.block(name, block);
  simulator().changed();
}

WEFT_CUDA_EXPORT unsigned weft_cuda_sim_blocked() {
  const Lock lock(simulator().mutex);
  return simulator().blocked;
}

WEFT_CUDA_EXPORT void weft_cuda_sim_lose_device(Ordinal device, Status status) {
  Simulator& s = simulator();
  Lock lock(s.mutex);
  s.device(device).lost = status;
  for (const auto& context : s.contexts) {
    if (context->device != device || context->destroyed) continue;
    break_context(*context, status);
    s.progress.wait(lock, [&] { return context->running == 0 || s.leaving; });
  }
}

WEFT_CUDA_EXPORT std::uint64_t weft_cuda_sim_sequence() {
  return simulator().log.draw();
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_log(Record* records, std::size_t room) {
  const Lock lock(simulator().mutex);
  const std::vector<Record>& known = simulator().log.records();
  std::copy_n(known.begin(), std::min(room, known.size()), records);
  return known.size();
}

WEFT_CUDA_EXPORT void weft_cuda_sim_clear() {
  const Lock lock(simulator().mutex);
  simulator().log.clear();
}

WEFT_CUDA_EXPORT void weft_cuda_sim_counters(Counters* counters) {
  const Lock lock(simulator().mutex);
  *counters = simulator().log.counters();
}

WEFT_CUDA_EXPORT bool weft_cuda_sim_await(Phase phase, std::uint64_t copies,
                                          unsigned milliseconds) {
  Simulator& s = simulator();
  Lock lock(s.mutex);
  return s.progress.wait_for(lock, std::chrono::milliseconds(milliseconds),
                             [&] { return s.log.copies(phase) >= copies; });
}

WEFT_CUDA_EXPORT bool weft_cuda_sim_map(Address address) {
  const Lock lock(simulator().mutex);
  const RegionPtr region = simulator().memory.find(address);
  if (!region || region->kind != Kind::device) return false;
  region->mapped = true;
  return true;
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_handles() {
  const Lock lock(simulator().mutex);
  return simulator().handles;
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_stack_depth() {
  return context_stack().size();
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_streams() {
  const Lock lock(simulator().mutex);
  std::size_t count = 0;
  use_created_streams([&](const StreamObject& each) { count += each.closed() ? 0 : 1; });
  return count;
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_events() {
  const Lock lock(simulator().mutex);
  return simulator().events.size();
}

WEFT_CUDA_EXPORT std::size_t weft_cuda_sim_regions() {
  const Lock lock(simulator().mutex);
  return simulator().memory.regions().size();
}

WEFT_CUDA_EXPORT unsigned weft_cuda_sim_retained(Ordinal device) {
  const Lock lock(simulator().mutex);
  return simulator().device(device).retained;
}

}  // namespace weft::cuda_sim
