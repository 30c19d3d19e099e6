// Points in a GPU's work that wait for something of the engine's.
#pragma once

#include <memory>
#include <weft/error.hpp>

namespace weft::core {

/// Work that was put on a stream behind it begins once it is open.
class StreamGate {
 public:
  /// Opens it, unless it is open.
  virtual ~StreamGate() = default;
  /// From any thread, without waiting; the second time without effect. What the CPU wrote before is
  /// seen behind it.
  virtual void open() = 0;
};

/// Puts one on a stream (of CUDA: CUstream; null: the legacy default one of the current context).
/// An error if no GPU's driver is in this process, or no such stream; `queue_full` if so many
/// streams wait already that the GPU could do nothing else.
Result<std::unique_ptr<StreamGate>> hold_stream(void* stream);

}  // namespace weft::core
