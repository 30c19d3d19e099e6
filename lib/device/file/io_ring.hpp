// Files by io_uring, where this build has liburing.
#pragma once

#include <memory>
#include <string>

#include "device/file/io_channel.hpp"

namespace weft::core {

struct IoRing {
  /// Why there is no io_uring to be had; empty: there is.
  static std::string check();
  /// Null if there is none just now.
  static std::unique_ptr<IoChannel> open();
};

}  // namespace weft::core
