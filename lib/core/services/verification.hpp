// Transfers whose bytes are compared at both ends: this engine's, and what it hashes for peers.
#pragma once

#include <memory>

#include "control/control.hpp"
#include "rail/rails.hpp"
#include "services/grants.hpp"
#include "services/peer_table.hpp"
#include "verify/checks.hpp"
#include "verify/hasher.hpp"

namespace weft::core {

/// start() and end() come from progress threads, take() from the control thread; the hasher has one
/// of its own.
class Verification {
 public:
  Verification(Hasher& hasher, const Rails& rails, const Grants& grants, const PeerTable& peers,
               const std::shared_ptr<ControlPlane>& control);

  void start(const std::shared_ptr<TransferState>& transfer) { checks_.start(transfer); }
  void end(const TransferState& transfer) { checks_.end(transfer); }

  // What peers say.
  void take(const PeerState& peer, const CheckReply& notice) {
    checks_.answered(peer.link, notice);
  }
  void take(PeerState& peer, const CheckRequest& notice);

 private:
  Result<Hasher::Job> job_for(const std::shared_ptr<PeerState>& peer, const CheckRequest& notice);

  Hasher& hasher_;
  const Grants& grants_;
  const PeerTable& peers_;
  const std::shared_ptr<ControlPlane>& control_;
  Checks checks_;
};

}  // namespace weft::core
