// For tests: a device process with its simulated hosts and NICs, and what other programs need in
// their environment to find these.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "shared/wire.hpp"

namespace weft::efa_sim {

/// Talks to a device that runs. Everything throws std::runtime_error when it is refused.
class EfaControl {
 public:
  explicit EfaControl(const std::string& socket);
  /// That of the environment in which this process runs (see with-efa).
  static EfaControl of_environment();

  /// Changes settings, "name=value" with commas between (README.md lists them). They hold when
  /// this returns.
  void set(const std::string& settings);
  Counters counters();
  /// The memory that a process has registered; 0: all of them.
  Registrations registrations(pid_t process = 0);
  /// Throws if the device can't reach the memory of processes.
  void check_reach();

 private:
  Reply ask(Request request);
  Descriptor socket_;
};

struct EfaOptions {
  unsigned nics = 4;
  std::string nic_list;  // instead of a number: name@pci-address@gigabits[@numa-node],...
  std::string settings;  // from the beginning
  unsigned hosts = 0;    // among which processes are dealt; 0: every process is a host of its own
  std::uint64_t seed = 1;
};

/// Starts a device and ends it.
class EfaFabric {
 public:
  /// Throws std::runtime_error with the reason.
  explicit EfaFabric(const EfaOptions& options = {});
  ~EfaFabric();
  EfaFabric(const EfaFabric&) = delete;
  EfaFabric& operator=(const EfaFabric&) = delete;

  EfaControl& control() { return *control_; }
  void set(const std::string& settings) { control_->set(settings); }
  pid_t process() const { return process_; }

  /// What a program needs to find the NICs of a host (negative: of whatever host it is dealt).
  std::map<std::string, std::string> environment(int host = -1) const;
  /// Sets that for the programs which this process starts from now on.
  void set_environment(int host = -1) const;

 private:
  pid_t process_ = -1;
  std::string socket_;
  std::unique_ptr<EfaControl> control_;
};

}  // namespace weft::efa_sim
