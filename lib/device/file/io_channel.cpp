#include "device/file/io_channel.hpp"

#include "base/sync.hpp"
#include "device/file/io_ring.hpp"

namespace weft::core {
namespace {

Mutex maker_mutex;

MakeIoChannel& maker() WEFT_REQUIRES(maker_mutex) {
  static auto& make = *new MakeIoChannel;  // as long as the process
  return make;
}

/// Why this process has no io_uring; empty: it has.
const std::string& why_no_ring() {
  static const std::string& why = *new std::string(IoRing::check());
  return why;
}

}  // namespace

void make_io_channels_by(MakeIoChannel make) {
  const Lock lock(maker_mutex);
  maker() = std::move(make);
}

const std::string& io_channel_name() {
  static const std::string& name =
      *new std::string(why_no_ring().empty() ? "io_uring" : "threads: " + why_no_ring());
  return name;
}

std::unique_ptr<IoChannel> open_io_channel() {
  MakeIoChannel make;
  {
    const Lock lock(maker_mutex);
    make = maker();
  }
  if (make) return make();
  std::unique_ptr<IoChannel> ring;
  if (why_no_ring().empty()) ring = IoRing::open();
  return ring ? std::move(ring) : open_io_threads();
}

}  // namespace weft::core
