#include "nixl/registration.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "base/descriptor.hpp"

namespace weft::nixl {
namespace {

// For a confirmation of peers that live; those that don't are found out to be dead meanwhile.
constexpr auto patience = std::chrono::seconds(3);

Result<void> check_kind(const Segment& segment, abi::MemoryType type) {
  if (type != abi::MemoryType::vram || segment.place().kind == MemoryKind::device) return {};
  return fail(Code::invalid_argument,
              "the memory is registered as a GPU's (VRAM), and no GPU's driver knows it");
}

bool is_file(abi::MemoryType type) {
  return type == abi::MemoryType::file || type == abi::MemoryType::block;
}

/// Programs write at the end of a file that they have just made: so it grows.
Result<Memory> file_of(const abi::Descriptor& memory) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  const int fd = memory.device <= most ? static_cast<int>(memory.device) : -1;
  if (fcntl(fd, F_GETFL) < 0)
    return fail(Code::invalid_argument,
                fmt::format("{} is no open descriptor: files are registered by theirs, in the "
                            "place of the device's number",
                            memory.device));
  FileOptions options;
  options.create = true;
  return Memory::file(fd, memory.address, memory.bytes, options);
}

}  // namespace

Result<Memory> memory_of(const abi::Descriptor& memory, abi::MemoryType type) {
  if (is_file(type)) return file_of(memory);
  if (type != abi::MemoryType::dram && type != abi::MemoryType::vram)
    return fail(Code::unsupported, "only DRAM, VRAM, files and block devices can be registered");
  // NIXL's addresses are numbers.
  auto* address = reinterpret_cast<void*>(memory.address);  // NOLINT(performance-no-int-to-ptr)
  return Memory::adopt(address, memory.bytes);
}

Result<std::unique_ptr<Registration>> Registration::make(Engine& engine,
                                                         const abi::Descriptor& memory,
                                                         abi::MemoryType type) {
  const auto described = memory_of(memory, type);
  if (!described) return fail(described.error());
  auto segment = engine.add(*described);
  if (!segment) return fail(std::move(segment.error()));
  if (auto kind = check_kind(*segment, type); !kind) return fail(std::move(kind.error()));
  const bool source =
      is_file(type) && core::is_open_for_reading_only(static_cast<int>(memory.device));
  auto grant = segment->grant({}, source ? Rights::read : Rights::read_write);
  if (!grant) return fail(std::move(grant.error()));
  return std::make_unique<Registration>(std::move(*segment), std::move(*grant), memory, type,
                                        source);
}

Result<void> Registration::release(Deadline deadline) {
  const auto soon = Deadline::at(std::min(deadline.when(), Deadline::in(patience).when()));
  auto released = segment_->release(soon);
  if (released || released.error().code() != Code::quarantined) return released;
  if (auto fenced = grant_.fence(deadline, FenceScope::rail); !fenced)
    return fail(Code::quarantined,
                fmt::format("{}; its holders could not be cut off either: {}",
                            released.error().message(), fenced.error().to_string()));
  return segment_->release(deadline);
}

}  // namespace weft::nixl
