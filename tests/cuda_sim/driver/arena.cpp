#include "driver/arena.hpp"

#include <sys/mman.h>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

constexpr std::size_t arena_bytes = std::size_t{256} << 30;
// As the real driver's granularity; IPC and dmabuf need whole pages.
constexpr std::size_t alignment = std::size_t{2} << 20;

}  // namespace

void Arena::reserve() {
  void* const range =
      mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(range != MAP_FAILED, out_of_memory);
  begin_ = reinterpret_cast<Address>(range);
  end_ = begin_ + arena_bytes;
  next_ = begin_;
}

Address Arena::take(std::size_t bytes) {
  require(bytes < arena_bytes, out_of_memory);
  const std::size_t whole = (bytes / alignment + 2) * alignment;
  bool from_the_beginning = false;
  for (Address at = (next_ + alignment - 1) / alignment * alignment;;) {
    if (at + whole > end_) {
      require(!from_the_beginning, out_of_memory);
      from_the_beginning = true;
      at = (begin_ + alignment - 1) / alignment * alignment;
      continue;
    }
    auto following = taken_.lower_bound(at);
    if (following != taken_.begin() && std::prev(following)->second > at) {
      at = std::prev(following)->second;
      continue;
    }
    if (following != taken_.end() && following->first < at + whole) {
      at = following->second;
      continue;
    }
    taken_[at] = next_ = at + whole;
    return at;
  }
}

void Arena::give_back(Address base) {
  taken_.erase(base);
}

bool Arena::touches(Address address, std::size_t bytes) const {
  return address < end_ && address + bytes > begin_;
}

}  // namespace weft::cuda_sim
