// libfabric's shm: processes of one machine and user; the target copies by process_vm_readv.
// Taken only when it is asked for by name: it keeps locks in shared memory and answers all peers of
// an endpoint in order (1.17, prov/shm/src/smr_progress.c), so that a peer that is killed, or one
// refused write, stops it for everybody. The provider `shm` has neither.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "providers/libfabric/spec.hpp"

namespace weft::providers {
namespace {

constexpr Way fi_shm_ways[] = {{"shm"}};

void fi_shm_hints(fi_info&) {}

// The target copies, by process_vm_readv or process_vm_writev (1.17, prov/shm/src/smr_progress.c:
// smr_progress_iov). Small writes under FI_DELIVERY_COMPLETE, and small messages, are copied into
// the region by the initiator and out of it by the target (smr_ep.c: smr_select_proto): the same
// number of copies as with a bounce, but the target's is the CPU's too.
constexpr Carriage fetched = {
    .target_copies = true,
    .by = Mover::kernel,
    .bounced_below = 4096 + 1,  // smr.h: SMR_INJECT_SIZE
    .initiator_bounces = true,
};

// For reads 1.17 asks `cma_avail && FI_HMEM_SYSTEM`, which is 0, and takes the region for all of
// them (there; tests/witness has seen it). 2.x asks for the kind of memory; in which version that
// began was not looked for.
bool reads_through_the_region() {
  return FI_VERSION_LT(libfabric().version, FI_VERSION(2, 0));
}
constexpr Carriage through_the_region = {
    .initiator_copies = true, .target_copies = true, .by = Mover::cpu};

void fi_shm_quirks(const fi_info&, Capability& record) {
  record.same_host_only = true;
  // Zero-based addresses and FI_DELIVERY_COMPLETE: without both, 1.17 lets writes with a wrong key
  // land.
  record.keys_enforced = true;
  // A copy by a key does not notice that the key is being closed.
  record.fence = FenceScope::rail;
  record.proof = CompletionProof::visible;
  record.write_carriage = record.message_carriage = fetched;
  record.read_carriage = reads_through_the_region() ? through_the_region : fetched;
  record.read_carriage.bounced_below = 0;
  record.device_memory_problem = "the kernel copies between address spaces, of host memory alone";
  record.tuning.chunk = std::uint64_t{512} << 10;
  record.tuning.window = 4;
  record.tuning.rails = 2;
  record.tuning.share = std::uint64_t{1} << 20;
}

// Regions are named weft-<process namespace>-<process>-<count>: unlike the provider's own names
// these tell their owner, and never repeat.
std::uint64_t process_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string source_name() {
  static std::atomic<unsigned> count{0};
  return fmt::format("weft-{}-{}-{}", process_namespace(), getpid(), count.fetch_add(1));
}

/// The process of this namespace that a name tells; 0: none.
pid_t process_of(const char* name) {
  std::uint64_t space = 0;
  long process = 0;
  const bool ours = std::sscanf(name, "weft-%" SCNu64 "-%ld-", &space, &process) == 2 &&
                    space == process_namespace() && process > 0;
  return ours ? static_cast<pid_t>(process) : 0;
}

bool left_behind(const char* name) {
  const pid_t process = process_of(name);
  return process != 0 && kill(process, 0) != 0 && errno == ESRCH;
}

/// From libfabric 2.5 on (2.6 still does), an endpoint that is called by another one of its process
/// follows a wild pointer when it answers: smr_map_to_region (prov/shm/src/smr_av.c) finds the
/// memory of an endpoint of the same process in a list, and then never says where it is
/// (smr_map_to_endpoint).
Result<void> check_peer(std::string_view address) {
  // libfabric may set "fi_shm://" before it.
  const std::size_t begin = address.find("weft-");
  const bool own =
      begin != address.npos && process_of(std::string(address.substr(begin)).c_str()) == getpid();
  if (!own || FI_VERSION_LT(libfabric().version, FI_VERSION(2, 5))) return {};
  return fail(Code::unavailable,
              "libfabric's shm crashes between two engines of one process, from libfabric 2.5 on");
}

// A process that was killed leaves its regions behind. Those of this user and process namespace
// whose process is gone are removed.
void remove_leftovers() {
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    struct stat status {};
    if (left_behind(entry->d_name) &&
        fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == geteuid())
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

}  // namespace

const Spec fi_shm = {
    .name = "fi_shm",
    .ways = fi_shm_ways,
    .serialise = true,
    .hints = fi_shm_hints,
    .quirks = fi_shm_quirks,
    .score = "it reaches other processes of this machine",
    .is_nic = false,
    .prepare = remove_leftovers,
    .shared_in_process = true,
    .check_peer = check_peer,
    .source_name = source_name,
};

}  // namespace weft::providers
