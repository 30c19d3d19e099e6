// Other processes of this host.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/descriptor.hpp"

namespace weft::core {

/// One process, whatever becomes of its number. From any thread.
class Process {
 public:
  /// The one that has this number now; `unavailable` if there is none, or Linux is older than 5.3.
  static Result<Process> of(std::int32_t pid);

  /// Whether it has ended, be it reaped or not. By then its files are closed.
  bool ended() const noexcept;
  /// False if the deadline passed first.
  bool wait_ended(Deadline deadline) const noexcept;

 private:
  explicit Process(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;  // pidfd_open(2)
};

}  // namespace weft::core
