// A side that does what the one that measures asks: it grants memory, or initiates too.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <weft/engine.hpp>

#include "load/driver.hpp"
#include "protocol/control.hpp"

namespace weft::perf {

/// Serves one that measures after the other.
class Target {
 public:
  /// `before_check`: what a test does to the memory before it is looked at.
  static Result<Target> open(const Site& site,
                             std::function<void(std::span<std::byte>)> before_check = {});

  const std::string& address() const noexcept { return engine_->address(); }
  /// The next initiator, until it leaves or dies. An error if none comes by the deadline, or if
  /// this side can't go on.
  Result<void> serve(Deadline deadline);
  /// From any thread: serve() ends.
  void interrupt();

 private:
  Target(const Site& site, Engine engine, std::function<void(std::span<std::byte>)> before_check);

  Site site_;
  std::unique_ptr<Engine> engine_;
  Driver driver_;
  std::stop_source stop_;
  std::function<void(std::span<std::byte>)> before_check_;
};

}  // namespace weft::perf
