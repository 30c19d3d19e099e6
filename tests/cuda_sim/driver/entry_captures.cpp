// Captures of graphs. The graphs themselves are empty, and can only be destroyed.
#include "driver/entry.hpp"

namespace weft::cuda_sim {

WEFT_CUDA_EXPORT Status cuStreamBeginCapture_v2(Stream handle, int mode) {
  return enter("cuStreamBeginCapture_v2", [&](Lock& lock) {
    require(mode >= 0 && mode <= static_cast<int>(CaptureMode::relaxed));
    simulator().captures.begin(stream_of(handle, lock), static_cast<CaptureMode>(mode));
  });
}

WEFT_CUDA_EXPORT Status cuStreamEndCapture(Stream handle, Graph* graph) {
  return enter("cuStreamEndCapture", [&](Lock& lock) {
    require(graph != nullptr);
    *graph = nullptr;
    require(simulator().captures.end(stream_of(handle, lock)), capture_invalidated);
    *graph = new GraphObject;
  });
}

WEFT_CUDA_EXPORT Status cuGraphDestroy(Graph graph) {
  return enter("cuGraphDestroy", [&](Lock&) {
    require(graph != nullptr);
    delete graph;
  });
}

WEFT_CUDA_EXPORT Status cuStreamIsCapturing(Stream handle, int* capturing) {
  return enter("cuStreamIsCapturing", [&](Lock& lock) {
    require(capturing != nullptr);
    const Capture* const capture = simulator().captures.of(stream_of(handle, lock));
    // CUstreamCaptureStatus: none, active, invalidated.
    *capturing = capture == nullptr ? 0 : capture->valid ? 1 : 2;
  });
}

WEFT_CUDA_EXPORT Status cuThreadExchangeStreamCaptureMode(int* mode) {
  return enter("cuThreadExchangeStreamCaptureMode", [&](Lock&) {
    require(mode != nullptr && *mode >= 0 && *mode <= static_cast<int>(CaptureMode::relaxed));
    const CaptureMode before =
        std::exchange(capture_mode_of_thread(), static_cast<CaptureMode>(*mode));
    *mode = static_cast<int>(before);
  });
}

}  // namespace weft::cuda_sim
