#include "workload/region.hpp"

#include <fmt/format.h>

#include "common/free_memory.hpp"
#include "common/units.hpp"

namespace weft::perf {

Result<void> check_room(std::uint64_t bytes) {
  const auto left = tool::free_memory();
  if (!left || bytes <= *left) return {};
  return fail(Code::out_of_memory,
              fmt::format("the window needs {} and the machine has {} left",
                          tool::binary_bytes(bytes), tool::binary_bytes(*left)));
}

Result<Region> Region::make(Engine& engine, const std::string& memory, std::uint64_t bytes) {
  if (auto room = check_room(bytes); !room) return fail(std::move(room.error()));
  return tool::PlacedSegment::make(engine, memory, bytes).map([](tool::PlacedSegment&& made) {
    return Region(std::move(made));
  });
}

Result<void> Region::fill(std::span<const Stretch> stretches, const std::stop_token& stop) {
  tool::GpuMemory* const gpu = memory_.gpu();
  if (gpu == nullptr) return perf::fill(memory_.bytes(), stretches, stop), Result<void>();
  Blob bytes(gpu->size());
  perf::fill(bytes, stretches, stop);
  return gpu->write(bytes);
}

Result<Findings> Region::check(std::span<const Stretch> stretches,
                               const std::function<void(std::span<std::byte>)>& before) const {
  const tool::GpuMemory* const gpu = memory_.gpu();
  Blob copy;
  if (gpu != nullptr) {
    copy.resize(gpu->size());
    if (auto read = gpu->read(copy); !read) return fail(std::move(read.error()));
  }
  const std::span bytes = gpu != nullptr ? std::span(copy) : memory_.bytes();
  if (before) before(bytes);
  return perf::check(bytes, stretches);
}

}  // namespace weft::perf
