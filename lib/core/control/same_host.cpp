#include "control/same_host.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"

namespace weft::core {
namespace {

constexpr const char* page_name = "weft-same-host";

struct Page {
  std::array<char, 8> magic{'w', 'e', 'f', 't', 'h', 'o', 's', 't'};
  std::uint64_t incarnation = 0;
  std::uint64_t nonce_address = 0;  // in the address space of the owner
  HostNonce nonce{};
};

template <typename... Args>
Proof unproven(fmt::format_string<Args...> text, Args&&... args) {
  return Proof{.reason = fmt::format(text, std::forward<Args>(args)...)};
}

/// Whether the path leads to a proof page, without opening it: the path comes from a stranger, and
/// opening a device or a file on a dead file server would have effects.
bool is_proof_page(const std::string& path, int& error) {
  std::array<char, 64> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  error = length < 0 ? errno : 0;
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length))
                           .starts_with(fmt::format("/memfd:{}", page_name));
}

bool read_page(const std::string& path, Page& page) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return false;
  // Not mapped: the owner could truncate it under the reader's feet.
  const ssize_t got = pread(descriptor, &page, sizeof page, 0);
  const int error = errno;
  close(descriptor);
  errno = error;
  return got == static_cast<ssize_t>(sizeof page);
}

}  // namespace

ProofPage::ProofPage(std::uint64_t incarnation) {
  if (getrandom(nonce_.data(), nonce_.size(), 0) != static_cast<ssize_t>(nonce_.size())) return;
  descriptor_ = open_memory_file(page_name).release();
  if (descriptor_ < 0) return;
  if (ftruncate(descriptor_, sizeof(Page)) == 0) {
    page_ = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (page_ != MAP_FAILED) {
      Page page;
      page.incarnation = incarnation;
      page.nonce_address = reinterpret_cast<std::uintptr_t>(page_) + offsetof(Page, nonce);
      page.nonce = nonce_;
      std::memcpy(page_, &page, sizeof page);
      return;
    }
  }
  page_ = nullptr;
  close(descriptor_);
  descriptor_ = -1;
}

ProofPage::~ProofPage() {
  if (page_ != nullptr) munmap(page_, sizeof(Page));
  if (descriptor_ >= 0) close(descriptor_);
}

HostClaim ProofPage::claim() const {
  if (page_ == nullptr) return {};
  return {static_cast<std::uint32_t>(getpid()), static_cast<std::uint32_t>(descriptor_)};
}

bool ProofPage::knows(const Proof& proof) const {
  return page_ != nullptr && proof.proven && proof.nonce == nonce_;
}

Proof prove_same_host(const HostClaim& claim, std::uint64_t incarnation) {
  if (claim.pid == 0 || claim.pid > INT_MAX || claim.descriptor > INT_MAX)
    return unproven("the peer offers no page of shared memory to prove it by");
  const std::string path = fmt::format("/proc/{}/fd/{}", claim.pid, claim.descriptor);
  int error = 0;
  if (!is_proof_page(path, error)) {
    if (error == EACCES || error == EPERM)
      return unproven("another host, or process {} is here but {} can't be read: {}", claim.pid,
                      path, error_text(error));
    return unproven("another host or pid namespace: {} is not the peer's page here", path);
  }
  Page page;
  if (!read_page(path, page))
    return unproven("process {} is on this host, but {} can't be read: {}", claim.pid, path,
                    error_text(errno));
  if (page.magic != Page{}.magic || page.incarnation != incarnation)
    return unproven("another host: {} belongs to another engine here", path);

  Proof proof;
  iovec local{proof.nonce.data(), proof.nonce.size()};
  iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(page.nonce_address)),
               proof.nonce.size()};
  const ssize_t got = process_vm_readv(static_cast<pid_t>(claim.pid), &local, 1, &remote, 1, 0);
  if (got < 0)
    return unproven(
        "process {} is on this host, but its memory can't be read: {} (another user, a container, "
        "or kernel.yama.ptrace_scope)",
        claim.pid, error_text(errno));
  if (proof.nonce != page.nonce)
    return unproven("process {} is on this host, but its memory is not where it says", claim.pid);
  proof.proven = true;
  return proof;
}

}  // namespace weft::core
