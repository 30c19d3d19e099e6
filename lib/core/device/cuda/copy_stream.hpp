// Copies on a CUDA stream of our own.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "device/cuda/gpu.hpp"

namespace weft::core::cuda {

class CopyStream final : public CopyQueue {
 public:
  static Result<std::unique_ptr<CopyQueue>> open(const Gpu& gpu);
  ~CopyStream() override;

  Begun copy(std::span<const Copy> copies, Priority priority) override;
  Result<std::uint64_t> ended() override;

 private:
  CopyStream(const Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}
  Result<Event> take_event();
  tl::unexpected<Error> broken(const char* symbol, Status status);

  const Gpu& gpu_;
  const Stream stream_;
  std::deque<Event> marks_;  // behind what is under way, oldest first
  std::vector<Event> free_;
  std::uint64_t begun_ = 0;
  std::optional<Error> broken_;
};

}  // namespace weft::core::cuda
