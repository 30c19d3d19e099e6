#include "device/file/io_channel.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "device/file/io_ring.hpp"

namespace weft::core {
namespace {

/// How the channels of this process are made.
struct Makers {
  Mutex mutex;
  MakeIoChannel of_test WEFT_GUARDED_BY(mutex);
  std::string refused WEFT_GUARDED_BY(mutex);  // why a later one got no ring
};

Makers& makers() {
  static auto& all = *new Makers;  // as long as the process
  return all;
}

/// Why this process has no io_uring; empty: it has.
const std::string& why_no_ring() {
  static const std::string& why = *new std::string([] {
    const auto ring = open_io_ring();
    return ring ? std::string() : ring.error().message();
  }());
  return why;
}

/// Rings may run out: of descriptors, or of locked memory.
std::unique_ptr<IoChannel> open_ring_or_threads() {
  auto ring = open_io_ring();
  if (ring) return std::move(*ring);
  Makers& all = makers();
  const Lock lock(all.mutex);
  if (all.refused.empty())
    log(LogLevel::warning, "some files are read and written by threads: {}",
        ring.error().message());
  all.refused = ring.error().message();
  return open_io_threads();
}

}  // namespace

void make_io_channels_by(MakeIoChannel make) {
  const Lock lock(makers().mutex);
  makers().of_test = std::move(make);
}

std::string io_channel_name() {
  if (!why_no_ring().empty()) return "threads: " + why_no_ring();
  const Lock lock(makers().mutex);
  return makers().refused.empty()
             ? "io_uring"
             : fmt::format("io_uring, and threads for some: {}", makers().refused);
}

std::unique_ptr<IoChannel> open_io_channel() {
  MakeIoChannel make;
  {
    const Lock lock(makers().mutex);
    make = makers().of_test;
  }
  if (make) return make();
  return why_no_ring().empty() ? open_ring_or_threads() : open_io_threads();
}

}  // namespace weft::core
