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

#include "spec.hpp"

namespace weft::providers {
namespace {

constexpr Way ways[] = {{"shm"}};

void hints(fi_info&) {}

void quirks(const fi_info&, Capability& record) {
  record.same_host_only = true;
  // Zero-based addresses and FI_DELIVERY_COMPLETE: without both, 1.17 lets writes with a wrong key
  // land.
  record.keys_enforced = true;
  record.fence = FenceScope::grant;
  record.proof = CompletionProof::visible;
  record.ordered_messages = true;
  record.copies = 1;
  record.best_chunk = std::uint64_t{512} << 10;
  record.best_window = 4;
  record.best_share = std::uint64_t{1} << 20;
}

// Regions are named weft-<process namespace>-<process>-<count>: unlike the provider's own names
// these tell whose they are, and never repeat.
std::uint64_t process_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string source_name() {
  static std::atomic<unsigned> count{0};
  return fmt::format("weft-{}-{}-{}", process_namespace(), getpid(), count.fetch_add(1));
}

bool left_behind(const char* name) {
  std::uint64_t space = 0;
  long process = 0;
  return std::sscanf(name, "weft-%" SCNu64 "-%ld-", &space, &process) == 2 &&
         space == process_namespace() && process > 0 && kill(static_cast<pid_t>(process), 0) != 0 &&
         errno == ESRCH;
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
        status.st_uid == geteuid())
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

}  // namespace

const Spec fi_shm = {
    .name = "fi_shm",
    .ways = ways,
    .serialise = true,
    .hints = hints,
    .quirks = quirks,
    .merit = "it reaches other processes of this machine",
    .is_nic = false,
    .prepare = remove_leftovers,
    .shared_in_process = true,
    .source_name = source_name,
};

}  // namespace weft::providers
