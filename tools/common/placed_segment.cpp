#include "common/placed_segment.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/memory_place.hpp"

namespace weft::tool {
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

Result<std::vector<std::string>> gpus_near(const Config& config, const std::string& memory) {
  const int gpu = gpu_of(memory);
  if (gpu < 0) return std::vector<std::string>{};
  auto pci = gpu_pci(gpu);
  if (!pci) return fail(std::move(pci.error()));
  // A virtual machine may hide where a GPU is plugged in: then no NIC is nearer than another.
  const auto machine = machine_topology(config);
  if (!machine || !find_gpu(*machine, *pci)) return std::vector<std::string>{};
  return std::vector{std::move(*pci)};
}

Result<PlacedSegment> PlacedSegment::make(Engine& engine, const std::string& memory,
                                          std::uint64_t bytes) {
  if (auto checked = check_memory(memory); !checked) return fail(std::move(checked.error()));
  std::optional<Pages> pages;
  std::optional<GpuMemory> gpu;
  Memory described = memory == shared_memory ? Memory::shared(bytes) : Memory::own(bytes);
  const Place where = parse_place(memory).value_or(Place{});
  if (where.kind == MemoryKind::device) {
    auto allocated = GpuMemory::allocate(where.device, bytes);
    if (!allocated) return fail(std::move(allocated.error()));
    gpu.emplace(std::move(*allocated));
    described = Memory::adopt(gpu->address(), bytes);
  } else if (where.numa_node >= 0) {
    auto placed = pages_on(where.numa_node, bytes);
    if (!placed) return fail(std::move(placed.error()));
    pages.emplace(std::move(*placed));
    described = Memory::adopt(pages->data(), bytes);
  }
  auto segment = engine.add(described);
  if (!segment) return fail(std::move(segment.error()));
  return PlacedSegment(std::move(pages), std::move(gpu), std::move(*segment));
}

PlacedSegment::~PlacedSegment() {
  // Memory that a segment has adopted must outlive it.
  constexpr auto closing_time = std::chrono::milliseconds(200);
  if (adopted()) (void)release(Deadline::in(closing_time));
}

Result<void> PlacedSegment::release(Deadline deadline) {
  auto released = segment_.release(deadline);
  if (released) return released;
  if (pages_) pages_->abandon();
  if (gpu_) gpu_->abandon();
  return released;
}

}  // namespace weft::tool
