// The operations of a window: how one is begun, and when it has ended.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <weft/deadline.hpp>
#include <weft/engine.hpp>

#include "load/ends.hpp"
#include "workload/workload.hpp"

namespace weft::perf {

/// Operation i is under way from begin() until its ticket has told. They may end in any order. For
/// one thread.
class Operations {
 public:
  virtual ~Operations() = default;
  /// The ticket tells once, in this call or later, on any thread. After an error it may still tell.
  virtual Result<void> begin(std::uint32_t operation, Ticket ticket) = 0;
  /// Of one that has told: the error that ended it.
  virtual Result<void> outcome(std::uint32_t operation) = 0;
  /// Until any has told, or the deadline, making progress if that is the caller's to do.
  virtual void wait(Ends& ends, Deadline deadline) { ends.wait(deadline); }
};

/// Those of several windows as one of their sum: operations go to the windows in turn.
class Fanned final : public Operations {
 public:
  /// All windows are as large as each other, and of one engine.
  explicit Fanned(std::vector<std::unique_ptr<Operations>> windows)
      : windows_(std::move(windows)), begun_(windows_.size()) {}

  Result<void> begin(std::uint32_t operation, Ticket ticket) override;
  Result<void> outcome(std::uint32_t operation) override;
  void wait(Ends& ends, Deadline deadline) override;

  /// How many operations of a window have begun.
  std::uint64_t begun(std::size_t window) const { return begun_[window]; }

 private:
  Operations& of(std::uint32_t operation) { return *windows_[operation % windows_.size()]; }
  std::uint32_t within(std::uint32_t operation) const {
    return static_cast<std::uint32_t>(operation / windows_.size());
  }
  std::vector<std::unique_ptr<Operations>> windows_;
  std::vector<std::uint64_t> begun_;
};

/// Writes and reads. Ends are taken when they happen, on the engine's threads.
class Transfers final : public Operations {
 public:
  /// `signal`: raised by every transfer of operations that signal. `in_order`: a wait is for
  /// the oldest operation, as in applications that need them in order, and the waiting thread may
  /// copy; else for whichever ends first.
  static Result<std::unique_ptr<Transfers>> make(Engine& engine, const Work& work,
                                                 const Workload& load, const Segment& local,
                                                 const Remote& remote, std::uint64_t signal,
                                                 Nanoseconds timeout, bool in_order);
  /// Cancels what is under way.
  ~Transfers() override;

  Result<void> begin(std::uint32_t operation, Ticket ticket) override;
  Result<void> outcome(std::uint32_t operation) override;
  void wait(Ends& ends, Deadline deadline) override;

 private:
  struct Slot;
  Transfers(Engine& engine, const Work& work, const Workload& load, Prepared writes, Prepared reads,
            std::uint64_t signal, Nanoseconds timeout, bool in_order);

  Engine& engine_;
  const bool manual_;
  const Work& work_;
  const Workload& load_;
  const Prepared writes_, reads_;
  const std::uint64_t signal_;
  const Nanoseconds timeout_;
  const bool in_order_;
  std::vector<std::uint32_t> picks_;
  std::unique_ptr<Slot[]> slots_;
  std::list<std::uint32_t> idle_, under_way_;  // operations; these in the order of their begins
};

/// Tags of messages: the operation's number, and of answers with this bit.
constexpr std::uint64_t answer_tag = std::uint64_t{1} << 62;
/// Tells the target that there are no more.
constexpr std::uint64_t last_tag = std::uint64_t{1} << 63;
constexpr std::uint64_t whole_tag = ~std::uint64_t{0};

/// Tagged messages. An end is when the answer is here.
class Messages final : public Operations {
 public:
  Messages(Engine& engine, Peer peer, const Work& work, std::uint64_t seed, Nanoseconds timeout);

  Result<void> begin(std::uint32_t operation, Ticket ticket) override;
  Result<void> outcome(std::uint32_t operation) override;
  void wait(Ends& ends, Deadline deadline) override;

 private:
  struct Slot;
  Engine& engine_;
  const bool manual_;
  const Peer peer_;
  const Nanoseconds timeout_;
  std::vector<Blob> bytes_;
  std::vector<std::optional<Receive>> answers_;
  std::shared_ptr<Slot[]> slots_;
};

}  // namespace weft::perf
