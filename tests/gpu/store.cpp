#include "store.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "device/cuda/driver.hpp"
#include "kernels.hpp"
#include "pattern.hpp"

namespace weft::test {
namespace {

struct Kernels {
  WeftGpuFill* fill = nullptr;
  WeftGpuFirstWrong* first_wrong = nullptr;
};

Kernels load_kernels() {
  const char* path = std::getenv("WEFT_GPU_KERNELS");
  if (path == nullptr || *path == '\0') return {};
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const Kernels kernels{
      reinterpret_cast<WeftGpuFill*>(dlsym(library, "weft_gpu_fill")),
      reinterpret_cast<WeftGpuFirstWrong*>(dlsym(library, "weft_gpu_first_wrong"))};
  if (kernels.fill == nullptr || kernels.first_wrong == nullptr)
    throw std::runtime_error(std::string(path) + " lacks its kernels");
  return kernels;
}

const Kernels& kernels() {
  static const Kernels loaded = load_kernels();
  return loaded;
}

void check(const char* failed) {
  if (failed != nullptr) throw std::runtime_error(failed);
}

}  // namespace

std::vector<Landed> landed(Direction direction, std::span<const Pair> pairs, std::uint64_t seed) {
  std::vector<Landed> pieces;
  for (const Pair& each : pairs)
    pieces.push_back(direction == Direction::write
                         ? Landed{seed, each.remote, each.local, each.length}
                         : Landed{seed, each.local, each.remote, each.length});
  return pieces;
}

Store::Store(std::optional<int> gpu, std::size_t bytes) : bytes_(bytes) {
  if (gpu) {
    context_.emplace(*gpu);
    device_.emplace(bytes);
  } else {
    host_.resize(bytes);
  }
}

Store::Store(InParts, std::size_t bytes) : bytes_(bytes) {
  context_.emplace(0);
  parts_.emplace(bytes);
}

void Store::fill(std::uint64_t seed) {
  if (on_gpu() == nullptr) {
    test::fill(host_, seed);
  } else if (kernels().fill != nullptr) {
    check(kernels().fill(on_gpu()->pointer(), bytes_, seed, 0));
  } else {
    on_gpu()->fill(seed);
    // What comes out of pageable memory may still be on its way into the GPU, and Weft's streams
    // wait for no other.
    cuda_sim::check(cuda_sim::cuStreamSynchronize(nullptr));
  }
}

testing::AssertionResult Store::holds_at(std::uint64_t at, std::uint64_t length, std::uint64_t seed,
                                         std::uint64_t offset) const {
  if (length == 0) return testing::AssertionSuccess();
  if (on_gpu() == nullptr) return test::holds(Bytes(host_).subspan(at, length), seed, offset);
  if (kernels().first_wrong == nullptr)
    return test::holds(on_gpu()->read(at, length), seed, offset);
  std::uint64_t wrong = 0;
  check(kernels().first_wrong(on_gpu()->pointer() + at, length, seed, offset, &wrong));
  if (wrong == length) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "byte " << wrong << " of " << length << " is not that of stream " << seed;
}

testing::AssertionResult Store::holds(std::uint64_t seed, std::vector<Landed> pieces) const {
  std::sort(pieces.begin(), pieces.end(),
            [](const Landed& a, const Landed& b) { return a.to < b.to; });
  pieces.push_back({seed, bytes_, 0, 0});
  std::uint64_t end = 0;
  for (const Landed& piece : pieces) {
    if (auto before = holds_at(end, piece.to - end, seed, end); !before)
      return before << " (" << end << " on, where nothing landed)";
    if (auto within = holds_at(piece.to, piece.length, piece.seed, piece.from); !within)
      return within << " (" << piece.to << " on, where a piece landed)";
    end = piece.to + piece.length;
  }
  return testing::AssertionSuccess();
}

int gpus() {
  if (const auto driver = core::cuda::Driver::load(); !driver)
    throw std::runtime_error(driver.error().to_string());
  int count = 0;
  cuda_sim::check(cuda_sim::cuDeviceGetCount(&count));
  if (count == 0) throw std::runtime_error("there is no GPU");
  return count;
}

}  // namespace weft::test
