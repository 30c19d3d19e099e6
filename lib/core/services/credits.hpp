// What peers say of credits goes to the rail concerned; and rails are told to give idle ones back.
#pragma once

#include "peer/peer_state.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/peer_table.hpp"
#include "wire/notice.hpp"

namespace weft::core {

/// take() is the control thread's, tidy() upkeep's.
class Credits {
 public:
  Credits(const Rails& rails, Workers& workers, const PeerTable& peers)
      : rails_(rails), workers_(workers), peers_(peers) {}

  void take(const PeerState& peer, const CreditsGivenBack& notice);
  void take(const PeerState& peer, const BounceCredits& notice);
  /// In every round of upkeep's.
  void tidy(Clock::time_point now);

 private:
  const Rails& rails_;
  Workers& workers_;
  const PeerTable& peers_;
  Clock::time_point tidied_at_{};
};

}  // namespace weft::core
