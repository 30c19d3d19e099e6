// Another process of this host, and the way to the descriptors that it shows to its peers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <weft/error.hpp>

#include "base/descriptor.hpp"
#include "base/process.hpp"

namespace weft::core {

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
