// This process and others of this host.
#pragma once

#include <cstdint>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/descriptor.hpp"

namespace weft::core {

/// With this process's number where the text says "%p": processes that have one environment get
/// names of their own by it.
std::string of_this_process(std::string text);

/// Descriptors 0, 1 and 2 that are closed get a place holder: reading and writing it fails as
/// before, and programs that this one starts do not get it. So no descriptor that is opened from
/// now on, by Weft or a library under it, has a number that others take for standard error.
void fill_standard_descriptors() noexcept;

/// A descriptor of the process that has this number now (pidfd_open(2)); -1, with errno, if there
/// is none, or Linux is older than 5.3.
Descriptor open_process(std::int32_t pid) noexcept;
/// Whether a process has ended, be it reaped or not. By then its files are closed.
bool has_ended(const Descriptor& process) noexcept;
bool has_ended(std::int32_t pid) noexcept;

/// One process, whatever becomes of its number. From any thread.
class Process {
 public:
  /// The one that has this number now; `unavailable` if there is none, or Linux is older than 5.3.
  static Result<Process> of(std::int32_t pid);
  /// `descriptor` becomes readable when it ends.
  explicit Process(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor take_descriptor() && { return std::move(descriptor_); }
  /// Another handle of the same process.
  Result<Process> again() const;
  bool ended() const noexcept { return has_ended(descriptor_); }
  /// False if the deadline passed first.
  bool wait_ended(Deadline deadline) const noexcept;

 private:
  Descriptor descriptor_;
};

}  // namespace weft::core
