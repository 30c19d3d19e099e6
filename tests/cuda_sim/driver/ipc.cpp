#include "driver/ipc.hpp"

#include <cstring>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

constexpr std::uint64_t handle_magic = 0x3143504974666577;  // "weftIPC1"
static_assert(sizeof(Exported) <= sizeof(IpcHandle));

}  // namespace

IpcHandle handle_of(const Region& region, const Uuid& device) {
  const Exported exported{.magic = handle_magic,
                          .process = getpid(),
                          .descriptor = region.backing.descriptor(),
                          .bytes = region.bytes,
                          .tag = region.tag,
                          .device = device};
  IpcHandle handle{};
  std::memcpy(&handle, &exported, sizeof exported);
  return handle;
}

Exported read_handle(const IpcHandle& handle) {
  Exported exported;
  std::memcpy(&exported, &handle, sizeof exported);
  require(exported.magic == handle_magic);
  return exported;
}

}  // namespace weft::cuda_sim
