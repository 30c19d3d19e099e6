// How the owner of memory stands with the holders of one grant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::core {

/// A state machine without clocks, threads or messages. Peers hold the lease from the answer that
/// says so until they have confirmed that they stopped, and nothing of theirs is out; one that goes
/// without a word may still have operations in its NIC, and counts as lost until it is fenced off.
///
///     held --end()--> ended --the last holder confirmed, or fenced()--> over
class OwnedLease {
 public:
  using Holder = std::uint64_t;  // a LinkId

  /// It was not ended: it may be used.
  bool held() const noexcept { return !ended_; }
  /// It was ended and no holder can use it any more.
  bool over() const noexcept { return ended_ && holders_.empty() && lost_ == 0; }
  /// A holder still has to confirm, and may do so.
  bool awaited() const noexcept { return ended_ && !holders_.empty(); }
  const std::vector<Holder>& holders() const noexcept { return holders_; }
  std::size_t lost_holders() const noexcept { return lost_; }

  /// A peer asks whether it may use the memory. False if it may not.
  bool hold(Holder holder) {
    if (ended_) return false;
    if (std::find(holders_.begin(), holders_.end(), holder) == holders_.end())
      holders_.push_back(holder);
    return true;
  }
  /// No use may begin after this. Returns the holders to be asked to stop; the second time none.
  std::vector<Holder> end() {
    if (ended_) return {};
    ended_ = true;
    return holders_;
  }
  /// A holder has stopped for good, because it was asked to or because it is leaving. False if it
  /// was none.
  bool confirmed(Holder holder) { return std::erase(holders_, holder) > 0; }
  /// A holder has gone without a word. False if it was none.
  bool lost(Holder holder) {
    const std::size_t lost = std::erase(holders_, holder);
    lost_ += lost;
    return lost > 0;
  }
  /// After the end: nothing that a peer has posted or will post reaches the memory any more.
  void fenced() {
    if (!ended_) return;
    holders_.clear();
    lost_ = 0;
  }

 private:
  bool ended_ = false;
  std::vector<Holder> holders_;
  std::size_t lost_ = 0;
};

}  // namespace weft::core
