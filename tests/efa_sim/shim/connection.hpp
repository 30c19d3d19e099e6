// The process's connection to the device.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>

#include "shared/queues.hpp"
#include "shared/wire.hpp"

namespace weft::efa_sim {

class Connection {
 public:
  /// That of this process. A child of fork() gets one of its own.
  static Connection& get();

  /// Asks the device. The reply's error is EIO if there is none.
  Received<Reply> ask(Request request, const std::vector<int>& files = {});
  /// The device's folder; empty without a device.
  const char* folder();
  /// To be called after a send queue's doorbell was rung.
  void rang();
  /// To be called after another was.
  void wake();

 private:
  bool connect();
  DevicePage& device() { return *reinterpret_cast<DevicePage*>(page_.data()); }

  std::mutex mutex_;
  pid_t process_ = 0;
  Descriptor socket_;
  Received<Reply> welcome_{};
  SharedMemory page_;
  Descriptor wake_;
};

}  // namespace weft::efa_sim
