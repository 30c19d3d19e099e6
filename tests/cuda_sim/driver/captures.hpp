// Captures of graphs, and what they forbid.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "driver/stream.hpp"

namespace weft::cuda_sim {

/// CUstreamCaptureMode, and of each thread how captures concern it.
enum class CaptureMode : int { global, within_thread, relaxed };

/// The calling thread's.
CaptureMode& capture_mode_of_thread();

/// From a stream's cuStreamBeginCapture to its cuStreamEndCapture.
struct Capture {
  Stream stream = nullptr;
  CaptureMode mode = CaptureMode::global;
  std::thread::id thread;  // that began it
  bool valid = true;
};

/// Under the simulator's mutex.
class Captures {
 public:
  void begin(StreamObject& stream, CaptureMode mode);
  /// Whether it was valid to its end. Throws Failure.
  bool end(StreamObject& stream);
  /// Null: the stream captures nothing.
  Capture* of(const StreamObject& stream);

  /// Throws Failure if captures forbid the calling thread this entry point, and then they are
  /// worth nothing.
  void admit(const std::string& symbol);
  /// The same for what no stream takes while it captures, whatever the thread's mode.
  void forbid(const StreamObject& stream);

 private:
  std::vector<Capture> under_way_;
};

}  // namespace weft::cuda_sim
