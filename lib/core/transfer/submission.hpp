// One transfer as it was asked for, with all that it needs until its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include <weft/transfer.hpp>

#include "base/use_count.hpp"
#include "transfer/prepared.hpp"

namespace weft::core {

struct Submission {
  explicit Submission(Clock::time_point now) : submitted(now) {}

  std::shared_ptr<const PreparedState> prepared;
  Entered local_use, remote_use;                    // of the memory on both sides, until let_go()
  std::optional<std::vector<std::uint32_t>> picks;  // as Picks
  std::uint64_t bytes = 0;
  std::function<void(const Ended&)> on_end;
  std::uint64_t cookie = 0;
  void* after_gpu_event = nullptr;
  std::optional<std::uint64_t> signal;  // its number
  Blob signal_bytes;
  Priority priority = Priority::normal;
  bool event = false;
  bool verify = false;
  Clock::time_point submitted;
  Clock::time_point deadline;
  bool trusted = false;            // a read that needs no proof of its lease: for measurements only
  bool waiter_takes_part = false;  // in copying it, beside its rail
  TransportKind transport = TransportKind::one_sided;

  Picks picked() const { return picks ? Picks(*picks) : std::nullopt; }
  /// What its rails may carry. Only NICs that access the memory itself need keys for it.
  const Reach& reach() const noexcept {
    return transport == TransportKind::one_sided ? prepared->reach : no_keys();
  }
  /// Takes what is needed later, and no more: there may be very many submissions.
  void take(TransferOptions&& options);
  /// Nothing touches memory on its behalf any more, at either side.
  void let_go() {
    local_use.leave();
    remote_use.leave();
  }

 private:
  static const Reach& no_keys() noexcept;
};

}  // namespace weft::core
