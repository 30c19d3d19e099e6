// This process, its forks, and others of this host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

/// How often this process image was forked since it was started; cheap enough for every call.
std::uint64_t fork_generation() noexcept;

/// The one error that every call gives in a forked child.
Error forked_error();

/// One of the descriptors that an engine shows to its peers of the host.
struct DescriptorName {
  std::uint64_t owner = 0;   // a random number of what it belongs to
  std::uint64_t number = 0;  // which one of it
};

/// A descriptor of another process, by both ways to it.
struct Sought {
  DescriptorName name;
  std::int32_t descriptor = -1;  // its number in that process
  std::string_view kind;         // what its link in /proc begins with
  int mode = 0;                  // as of open(2)
};

/// From any thread.
class HostProcess {
 public:
  explicit HostProcess(Process process) : process_(std::move(process)) {}
  virtual ~HostProcess() = default;

  /// Opens a descriptor of the process anew, if it is of the kind that is sought.
  virtual Result<Descriptor> open(const Sought& sought) const = 0;
  /// Whether open() waits for the other process, so that progress threads must not call it.
  virtual bool waits() const noexcept = 0;
  /// By which the kernel copies to and from its memory. 0: the kernel does not.
  virtual std::int32_t pid() const noexcept = 0;

  bool ended() const noexcept { return process_.ended(); }
  /// To wait for its end.
  Result<Process> watch() const { return process_.again(); }

 private:
  const Process process_;
};

/// The process of that number, in whose /proc this one may look.
Result<std::shared_ptr<const HostProcess>> process_by_number(std::int32_t pid);

/// Opens what a link of /proc leads to, if that is of this kind: the number in the path came from
/// outside, and opening a device could have effects.
Result<Descriptor> open_link(const std::string& path, std::string_view kind, int mode);

}  // namespace weft::core
