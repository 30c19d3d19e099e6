// The grants of peers that this engine uses: how it gets them, and how it gives them back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>
#include <weft/place.hpp>

#include "control/control.hpp"
#include "lease/directory.hpp"
#include "lease/imported_grants.hpp"
#include "metrics/ledger.hpp"
#include "rail/workers.hpp"
#include "services/owner.hpp"
#include "services/peer_table.hpp"

namespace weft::core {

/// The application's threads call what its handles ask for; take() and link_down() are the control
/// thread's.
class Imports {
 public:
  /// `tell`: what it has to say about leases.
  Imports(const Config& config, const Owner& owner, Workers& workers, const PeerTable& peers,
          Directory& directory, const std::unique_ptr<Ledger>& ledger,
          const std::shared_ptr<ControlPlane>& control, ImportedGrants::Tell tell);

  Result<std::shared_ptr<RemoteState>> import(Bytes blob, Deadline deadline);
  Result<std::shared_ptr<RemoteState>> lookup(PeerState& peer, std::string_view name,
                                              Deadline deadline);
  /// To one peer, or to all if it is null: what is out under them gets a moment to drain, and what
  /// does not is a matter of the owner's quarantine.
  void give_back(const PeerState* peer);

  // What peers say.
  void take(const PeerState& peer, LookupReply&& notice);
  void take(const PeerState& peer, const RevokeRequest& notice);
  void take(const PeerState& peer, const GrantStatus& notice);
  void take(const PeerState& peer, const KeysReplaced& notice) { imported_.take(peer, notice); }
  void take(const PeerState& peer, const LeaseRenewed& notice) { imported_.take(peer, notice); }
  void take(const PeerState& peer, const RailMoved& notice);
  void link_down(LinkId link, const Error& why);

 private:
  static void reach(RemoteState& remote);
  Result<std::shared_ptr<RemoteState>> confirmed(const ImportedGrants::Added& added,
                                                 Deadline deadline);

  const Config& config_;
  const Owner& owner_;
  Workers& workers_;
  const PeerTable& peers_;
  Directory& directory_;
  const std::unique_ptr<Ledger>& ledger_;  // null where nothing is to be counted
  const std::shared_ptr<ControlPlane>& control_;
  std::atomic<std::uint64_t> next_request_{1};
  ImportedGrants imported_;
};

}  // namespace weft::core
