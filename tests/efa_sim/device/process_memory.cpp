#include "process_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace weft::efa_sim {
namespace {

template <typename Call>
Copied copy(Call call, pid_t process, const std::vector<Piece>& pieces, void* own) {
  std::vector<iovec> remote;
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    remote.push_back({reinterpret_cast<void*>(piece.address), piece.length});
    bytes += piece.length;
  }
  if (bytes == 0) return Copied::all;
  const iovec local{own, bytes};
  const ssize_t copied = call(process, &local, 1, remote.data(), remote.size(), 0);
  if (copied < 0 && errno == ESRCH) return Copied::process_gone;
  return copied == static_cast<ssize_t>(bytes) ? Copied::all : Copied::not_all;
}

}  // namespace

std::vector<Piece> part_of(const std::vector<Piece>& pieces, std::uint64_t offset,
                           std::uint64_t length) {
  std::vector<Piece> part;
  for (const Piece& piece : pieces) {
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::uint64_t taken = std::min(piece.length - offset, length);
    if (taken == 0) break;
    part.push_back({piece.address + offset, taken});
    length -= taken;
    offset = 0;
  }
  return part;
}

Copied read_from(pid_t process, const std::vector<Piece>& pieces, std::byte* into) {
  return copy(process_vm_readv, process, pieces, into);
}

Copied write_to(pid_t process, const std::vector<Piece>& pieces, const std::byte* from) {
  return copy(process_vm_writev, process, pieces, const_cast<std::byte*>(from));
}

}  // namespace weft::efa_sim
