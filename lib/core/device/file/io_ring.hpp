// Files by io_uring, where this build has liburing.
#pragma once

#include <memory>
#include <weft/error.hpp>

#include "device/file/io_channel.hpp"

namespace weft::core {

/// Fails with the reason where there is no io_uring to be had, or none that reads files.
Result<std::unique_ptr<IoChannel>> open_io_ring();

}  // namespace weft::core
