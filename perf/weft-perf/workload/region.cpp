#include "workload/region.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/free_memory.hpp"
#include "common/units.hpp"
#include "workload/file_memory.hpp"

namespace weft::perf {
namespace {

// Guess: many times what the slowest drive takes for a step.
constexpr auto patience_with_a_drive = std::chrono::seconds(60);
constexpr std::uint64_t step_of_a_drive = std::uint64_t{64} << 20;

}  // namespace

Result<void> check_room(std::uint64_t bytes) {
  const auto left = tool::free_memory();
  if (!left || bytes <= *left) return {};
  return fail(Code::out_of_memory,
              fmt::format("the window needs {} and the machine has {} left",
                          tool::binary_bytes(bytes), tool::binary_bytes(*left)));
}

Result<Region> Region::make(Engine& engine, const std::string& memory, std::uint64_t bytes) {
  if (auto room = check_room(bytes); !room) return fail(std::move(room.error()));
  const auto of_file = file_of(memory);
  auto made = tool::PlacedSegment::make(engine, of_file ? "host" : memory, bytes);
  if (!made) return fail(std::move(made.error()));
  if (!of_file) return Region(std::move(*made), std::nullopt);
  FileOptions options;
  options.direct = of_file->direct;
  options.create = true;
  auto file = engine.add(Memory::file(of_file->path, 0, bytes, options));
  if (!file) return fail(std::move(file.error()));
  return Region(std::move(*made), std::move(*file));
}

Result<void> Region::copy(Segment& to, const Segment& from) {
  for (std::uint64_t at = 0; at < from.size(); at += step_of_a_drive) {
    const Pair step{at, at, std::min(step_of_a_drive, from.size() - at)};
    auto copied = to.copy_from(from, {&step, 1}, Deadline::in(patience_with_a_drive));
    if (!copied) return copied;
  }
  return {};
}

Result<void> Region::fill(std::span<const Stretch> stretches, const std::stop_token& stop) {
  if (tool::GpuMemory* const gpu = memory_.gpu()) {
    Blob bytes(gpu->size());
    perf::fill(bytes, stretches, stop);
    return gpu->write(bytes);
  }
  perf::fill(memory_.bytes(), stretches, stop);
  return file_ ? copy(*file_, memory_.segment()) : Result<void>();
}

Result<Findings> Region::check(std::span<const Stretch> stretches,
                               const std::function<void(std::span<std::byte>)>& before) const {
  const tool::GpuMemory* const gpu = memory_.gpu();
  Blob copied;
  if (gpu != nullptr) {
    copied.resize(gpu->size());
    if (auto read = gpu->read(copied); !read) return fail(std::move(read.error()));
  }
  if (file_)
    if (auto read = copy(memory_.segment(), *file_); !read) return fail(std::move(read.error()));
  const std::span bytes = gpu != nullptr ? std::span(copied) : memory_.bytes();
  if (before) before(bytes);
  return perf::check(bytes, stretches);
}

Result<void> Region::release(Deadline deadline) {
  auto released = file_ ? file_->release(deadline) : Result<void>();
  return released ? memory_.release(deadline) : released;
}

}  // namespace weft::perf
