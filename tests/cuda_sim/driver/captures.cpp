#include "driver/captures.hpp"

#include <algorithm>
#include <set>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

/// What is put on a stream, asks for what does not change, or concerns the thread alone. The driver
/// does not tell which calls are "potentially unsafe": all others are here.
bool is_safe(const std::string& symbol) {
  static const std::set<std::string> safe = {
      "cuCtxGetCurrent",
      "cuCtxGetDevice",
      "cuCtxGetFlags",
      "cuCtxPopCurrent_v2",
      "cuCtxPushCurrent_v2",
      "cuCtxSetCurrent",
      "cuDeviceCanAccessPeer",
      "cuDeviceGet",
      "cuDeviceGetAttribute",
      "cuDeviceGetCount",
      "cuDeviceGetName",
      "cuDeviceGetPCIBusId",
      "cuDeviceGetUuid",
      "cuDeviceTotalMem_v2",
      "cuEventRecord",
      "cuGraphDestroy",
      "cuLaunchHostFunc",
      "cuMemGetAddressRange_v2",
      "cuMemGetInfo_v2",
      "cuMemcpyAsync",
      "cuMemcpyDtoDAsync_v2",
      "cuMemcpyDtoHAsync_v2",
      "cuMemcpyHtoDAsync_v2",
      "cuMemcpyPeerAsync",
      "cuMemsetD8Async",
      "cuPointerGetAttribute",
      "cuPointerGetAttributes",
      "cuStreamBeginCapture_v2",
      "cuStreamEndCapture",
      "cuStreamGetCtx",
      "cuStreamIsCapturing",
      "cuStreamWaitEvent",
      "cuStreamWaitValue64_v2",
      "cuStreamWriteValue64_v2",
      "cuThreadExchangeStreamCaptureMode",
  };
  return safe.contains(symbol);
}

/// Whether it forbids the calling thread what is not safe.
bool concerns_thread(const Capture& capture) {
  if (capture_mode_of_thread() == CaptureMode::relaxed || capture.mode == CaptureMode::relaxed)
    return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return capture.mode == CaptureMode::global && capture_mode_of_thread() == CaptureMode::global;
}

}  // namespace

CaptureMode& capture_mode_of_thread() {
  thread_local CaptureMode mode = CaptureMode::global;
  return mode;
}

void Captures::begin(StreamObject& stream, CaptureMode mode) {
  require(stream.role == Role::created, capture_unsupported);
  require(of(stream) == nullptr, illegal_state);
  under_way_.push_back({&stream, mode, std::this_thread::get_id()});
}

bool Captures::end(StreamObject& stream) {
  const Capture* const capture = of(stream);
  require(capture != nullptr, illegal_state);
  require(capture->mode == CaptureMode::relaxed || capture->thread == std::this_thread::get_id(),
          capture_wrong_thread);
  const bool valid = capture->valid;
  std::erase_if(under_way_, [&](const Capture& each) { return each.stream == &stream; });
  return valid;
}

Capture* Captures::of(const StreamObject& stream) {
  const auto found =
      std::ranges::find_if(under_way_, [&](const auto& each) { return each.stream == &stream; });
  return found != under_way_.end() ? &*found : nullptr;
}

void Captures::admit(const std::string& symbol) {
  if (under_way_.empty() || is_safe(symbol)) return;
  bool forbidden = false;
  for (Capture& each : under_way_) {
    if (!concerns_thread(each)) continue;
    each.valid = false;
    forbidden = true;
  }
  require(!forbidden, capture_unsupported);
}

void Captures::forbid(const StreamObject& stream) {
  Capture* const capture = of(stream);
  if (capture == nullptr) return;
  capture->valid = false;
  fail(capture_unsupported);
}

}  // namespace weft::cuda_sim
