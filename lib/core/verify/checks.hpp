// Transfers that ask for it are checked end to end: the initiator computes the hash of its own
// memory, asks the peer for the hash of the peer's, and compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/sync.hpp"
#include "control/control.hpp"
#include "transfer/cursor.hpp"
#include "transfer/transfer_state.hpp"
#include "verify/hasher.hpp"

namespace weft::core {

/// Whether the owner of granted memory may say what a peer asks. Either right is enough: a writer
/// has to know what has arrived.
Result<void> answerable(const CheckRequest& question, std::span<const Range> granted);

/// On the initiator's side. A transfer is checked part by part, one question at a time; both ends
/// hash a part at the same time. From any thread.
class Checks {
 public:
  /// Most bytes of a part, which has at most limits::checked_ranges. They are few enough that a
  /// peer is not kept busy by what is not wanted any more, and enough that a round trip is cheap
  /// beside them.
  static constexpr std::uint64_t part = std::uint64_t{64} << 20;
  /// Transfers with one peer that are checked at a time; the others wait.
  static constexpr std::size_t at_a_time = 16;

  using Ask = std::function<void(LinkId, CheckRequest)>;
  /// Runs a task where transfers may end: on a progress thread, or inside the call that makes
  /// progress.
  using Post = std::function<void(const TransferState&, std::function<void()>)>;
  Checks(Hasher& hasher, Ask ask, Post post)
      : hasher_(hasher), ask_(std::move(ask)), post_(std::move(post)) {}

  /// Calls TransferState::verified() in time, unless end() comes first.
  void start(const std::shared_ptr<TransferState>& transfer);
  /// The transfer has ended, or needs to be checked no more.
  void end(const TransferState& transfer);
  void answered(LinkId link, const CheckReply& reply);

 private:
  struct Check {
    std::shared_ptr<TransferState> transfer;
    Cursor cursor;
    std::uint64_t request = 0;  // the part under way
    std::uint64_t begin = 0;    // where it begins among the bytes of the transfer,
    std::uint64_t length = 0;   // and how long it is
    std::optional<std::uint64_t> ours, theirs;
  };
  struct Peer {
    std::size_t under_way = 0;
    std::deque<std::weak_ptr<TransferState>> waiting;
  };

  void begin(const std::shared_ptr<TransferState>& transfer) WEFT_REQUIRES(mutex_);
  void next_part(Check& check) WEFT_REQUIRES(mutex_);
  void hashed(const std::shared_ptr<TransferState>& transfer, std::uint64_t request,
              const Result<std::uint64_t>& hash) WEFT_EXCLUDES(mutex_);
  void compare(Check& check) WEFT_REQUIRES(mutex_);
  void finish(const Check& check, std::optional<Error> error) WEFT_REQUIRES(mutex_);

  Hasher& hasher_;
  const Ask ask_;
  const Post post_;
  Mutex mutex_;
  std::unordered_map<const TransferState*, Check> checks_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, const TransferState*> requests_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<LinkId, Peer> peers_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t next_request_ WEFT_GUARDED_BY(mutex_) = 1;
};

}  // namespace weft::core
