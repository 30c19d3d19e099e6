#include "nixl/registration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace weft::nixl {
namespace {

// For a confirmation of peers that live; those that don't are found out to be dead meanwhile.
constexpr auto patience = std::chrono::seconds(3);

Result<void> check_kind(const Segment& segment, abi::MemoryType type) {
  if (type != abi::MemoryType::vram || segment.place().kind == MemoryKind::device) return {};
  return fail(Code::invalid_argument,
              "the memory is registered as a GPU's (VRAM), and no GPU's driver knows it");
}

Result<Registered> open_registered(FileNumbers& numbers, const abi::BlobDescriptor& memory,
                                   abi::MemoryType type) {
  auto file = open_file(memory, type);
  if (!file) return fail(std::move(file.error()));
  auto number = numbers.claim(type, memory.device, file->id);
  if (!number) return fail(std::move(number.error()));
  const int fd = file->descriptor.get();
  return Registered{memory, Memory::file(fd, memory.address, memory.bytes, file->options),
                    std::move(*file), std::move(*number)};
}

Result<Registered> registered(FileNumbers& numbers, const abi::BlobDescriptor& memory,
                              abi::MemoryType type) {
  if (memory.bytes == 0)
    return fail(Code::invalid_argument, "a registration of 0 bytes: nothing could be transferred");
  if (is_file(type)) return open_registered(numbers, memory, type);
  if (type != abi::MemoryType::dram && type != abi::MemoryType::vram)
    return fail(Code::unsupported, "only DRAM, VRAM, files and block devices can be registered");
  // NIXL's addresses are numbers.
  auto* address = reinterpret_cast<void*>(memory.address);  // NOLINT(performance-no-int-to-ptr)
  return Registered{memory, Memory::adopt(address, memory.bytes), {}, {}};
}

}  // namespace

Result<std::unique_ptr<Registration>> Registration::make(Engine& engine, FileNumbers& numbers,
                                                         const abi::BlobDescriptor& memory,
                                                         abi::MemoryType type) {
  auto of = registered(numbers, memory, type);
  if (!of) return fail(std::move(of.error()));
  auto segment = engine.add(of->memory);
  if (!segment) return fail(std::move(segment.error()));
  if (auto kind = check_kind(*segment, type); !kind) return fail(std::move(kind.error()));
  const bool source = of->file && of->file->read_only();
  auto grant = segment->grant({}, source ? Rights::read : Rights::read_write);
  if (!grant) return fail(std::move(grant.error()));
  return std::make_unique<Registration>(std::move(*segment), std::move(*grant), std::move(*of));
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
