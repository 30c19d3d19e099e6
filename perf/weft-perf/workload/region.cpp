#include "workload/region.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/free_memory.hpp"
#include "common/memory_place.hpp"
#include "common/units.hpp"
#include "workload/point.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t most_nodes = 1024;

Result<Pages> pages_on(int node, std::size_t bytes) {
  if (static_cast<std::size_t>(node) >= most_nodes)
    return fail(Code::invalid_argument, fmt::format("there is no node {}", node));
  Pages pages(bytes);
  if (pages.empty())
    return fail(Code::out_of_memory, fmt::format("no memory: {}", std::strerror(errno)));
  constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, most_nodes / word_bits> nodes{};
  const auto number = static_cast<std::size_t>(node);
  nodes[number / word_bits] = 1UL << (number % word_bits);
  if (::syscall(SYS_mbind, pages.data(), bytes, MPOL_BIND, nodes.data(), most_nodes, 0) != 0)
    return fail(Code::unavailable,
                fmt::format("no memory on node {}: {}", node, std::strerror(errno)));
  return pages;
}

}  // namespace

Result<void> check_room(std::uint64_t bytes) {
  const auto left = tool::free_memory();
  if (!left || bytes <= *left) return {};
  return fail(Code::out_of_memory,
              fmt::format("the window needs {} and the machine has {} left",
                          tool::binary_bytes(bytes), tool::binary_bytes(*left)));
}

Result<Region> Region::make(Engine& engine, const std::string& place, std::uint64_t bytes) {
  if (auto checked = check_memory(place); !checked) return fail(std::move(checked.error()));
  if (auto room = check_room(bytes); !room) return fail(std::move(room.error()));
  std::optional<Pages> pages;
  std::optional<GpuMemory> gpu;
  Memory memory = place == shared_memory ? Memory::shared(bytes) : Memory::own(bytes);
  const Place where = tool::parse_place(place).value_or(Place{});
  if (where.kind == MemoryKind::device) {
    auto allocated = GpuMemory::allocate(where.device, bytes);
    if (!allocated) return fail(std::move(allocated.error()));
    gpu.emplace(std::move(*allocated));
    memory = Memory::adopt(gpu->address(), bytes);
  } else if (where.numa_node >= 0) {
    auto placed = pages_on(where.numa_node, bytes);
    if (!placed) return fail(std::move(placed.error()));
    pages.emplace(std::move(*placed));
    memory = Memory::adopt(pages->data(), bytes);
  }
  auto segment = engine.add(memory);
  if (!segment) return fail(std::move(segment.error()));
  return Region(std::move(pages), std::move(gpu), std::move(*segment));
}

Region::~Region() {
  // Memory that a segment has adopted must outlive it.
  constexpr auto closing_time = std::chrono::milliseconds(200);
  if (adopted()) (void)release(Deadline::in(closing_time));
}

Result<void> Region::fill(std::span<const Stretch> stretches, const std::stop_token& stop) {
  if (!gpu_) return perf::fill({segment_.data(), segment_.size()}, stretches, stop), Result<void>();
  Blob bytes(gpu_->size());
  perf::fill(bytes, stretches, stop);
  return gpu_->write(bytes);
}

Result<Findings> Region::check(std::span<const Stretch> stretches,
                               const std::function<void(std::span<std::byte>)>& before) const {
  Blob copy;
  if (gpu_) {
    copy.resize(gpu_->size());
    if (auto read = gpu_->read(copy); !read) return fail(std::move(read.error()));
  }
  const std::span bytes = gpu_ ? std::span(copy) : std::span(segment_.data(), segment_.size());
  if (before) before(bytes);
  return perf::check(bytes, stretches);
}

Result<void> Region::release(Deadline deadline) {
  auto released = segment_.release(deadline);
  if (released) return released;
  if (pages_) pages_->abandon();
  if (gpu_) gpu_->abandon();
  return released;
}

}  // namespace weft::perf
