#include <unistd.h>

#include "base/process.hpp"
#include "providers/shm/region.hpp"
#include "providers/shm/shm.hpp"

namespace weft::providers::shm {
namespace {

// "weft". libfabric's FI_PROTO_* are small numbers, or have the top bit set.
constexpr std::uint32_t protocol = 0x77656674;

class ShmNic final : public Nic {
 public:
  std::string_view provider() const noexcept override { return "shm"; }
  Result<std::unique_ptr<Endpoint>> open() const override { return open_endpoint(); }
};

/// Whether the kernel can do it. Whether another process lets this one copy is seen when it is met;
/// what is mapped needs no such leave.
Result<void> usable() {
  const Descriptor self = core::open_process(getpid());
  if (self.get() < 0) return fail(system_error("pidfd_open (Linux 5.3)"));
  return {};
}

}  // namespace

Capability capability() {
  Capability record;
  record.provider = "shm";
  record.domain = "memory";
  record.protocol = protocol;
  record.address_format = layout_version;
  record.same_host_only = true;
  record.application_keys = true;
  // The initiator looks at keys and rights; the kernel enforces no more than the user.
  record.keys_enforced = false;
  record.fence = FenceScope::grant;
  record.max_message = std::uint64_t{1} << 30;  // process_vm_writev takes nearly 2 GiB at a time
  record.max_send = record.max_message;
  record.window = 1024;
  record.proof = CompletionProof::visible;
  // One copy by the initiator (Neighbour::copy): its own, where the memory lies behind a memfd that
  // it can map, else within its system call. Messages are copied into the
  // ring and out of it.
  record.maps_memory = true;
  record.write_carriage = {.initiator_copies = true, .by = Mover::kernel};
  record.read_carriage = record.write_carriage;
  record.message_carriage = {.initiator_copies = true, .target_copies = true, .by = Mover::cpu};
  record.device_memory_problem = "the kernel copies between address spaces, of host memory alone";
  record.tuning.chunk = std::uint64_t{512} << 10;
  record.tuning.window = 4;
  // The other end takes no part, so that two rails need two cores. Mapped memory the caller copies,
  // with the thread of one rail to help it.
  record.tuning.rails = 4;
  record.tuning.rails_sharing = 2;
  record.tuning.share = std::uint64_t{32} << 10;
  record.tuning.few_cores.one_for_mapped = true;
  return record;
}

void look(std::vector<Seen>& seen) {
  Seen memory;
  memory.found_nic.provider = "shm";
  memory.found_nic.title = "shm (Weft's own)";
  memory.found_nic.domain = "memory";
  memory.found_nic.is_nic = false;
  memory.found_nic.score = "it reaches other processes of this machine";
  if (auto can = usable(); !can) memory.found_nic.problem = can.error().message();
  memory.nic = std::make_shared<ShmNic>();
  seen.push_back(std::move(memory));
}

}  // namespace weft::providers::shm
