#include "device/file/io_ring.hpp"

#ifdef WEFT_HAS_URING

#include <fmt/format.h>
#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::core {
namespace {

// More than a device takes at a time (FileOptions::queue_depth). Ends find room beyond it too.
constexpr unsigned entries = 256;

class Ring final : public IoChannel {
 public:
  /// An errno; 0: it is open.
  int open() {
    io_uring_params params{};
    params.flags = IORING_SETUP_CLAMP;
    const int error = -io_uring_queue_init_params(entries, &ring_, &params);
    open_ = error == 0;
    return error;
  }
  ~Ring() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  bool begin(Io& io) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      flush();
      entry = io_uring_get_sqe(&ring_);
    }
    if (entry == nullptr) return false;
    const auto bytes = static_cast<unsigned>(io.bytes);
    if (io.write)
      io_uring_prep_write(entry, io.fd, io.memory, bytes, io.at);
    else
      io_uring_prep_read(entry, io.fd, io.memory, bytes, io.at);
    if (io.write && io.durable) entry->rw_flags = RWF_DSYNC;
    io_uring_sqe_set_data(entry, &io);
    return true;
  }
  /// What the kernel does not take now stays in the ring for the next call.
  void flush() override {
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
  }
  std::size_t ended(std::span<Io*> into) override {
    flush();
    std::size_t count = 0;
    io_uring_cqe* entry = nullptr;
    while (count < into.size() && io_uring_peek_cqe(&ring_, &entry) == 0) {
      Io* const io = static_cast<Io*>(io_uring_cqe_get_data(entry));
      io->result = entry->res;
      into[count++] = io;
      io_uring_cqe_seen(&ring_, entry);
    }
    return count;
  }

 private:
  io_uring ring_{};
  bool open_ = false;
};

}  // namespace

std::string IoRing::check() {
  Ring ring;
  const int error = ring.open();
  return error == 0 ? "" : fmt::format("io_uring is refused: {}", std::strerror(error));
}

std::unique_ptr<IoChannel> IoRing::open() {
  auto ring = std::make_unique<Ring>();
  if (ring->open() != 0) return nullptr;
  return ring;
}

}  // namespace weft::core

#else

namespace weft::core {

std::string IoRing::check() {
  return "this build has no liburing";
}

std::unique_ptr<IoChannel> IoRing::open() {
  return nullptr;
}

}  // namespace weft::core

#endif
