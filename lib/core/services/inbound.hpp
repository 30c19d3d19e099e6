// What the control plane brings: each notice goes to the service that it concerns.
#pragma once

#include <string>

#include "control/control.hpp"
#include "services/credits.hpp"
#include "services/grants.hpp"
#include "services/imports.hpp"
#include "services/messages.hpp"
#include "services/peer_table.hpp"
#include "services/peers.hpp"
#include "services/reopening.hpp"
#include "services/verification.hpp"

namespace weft::core {

/// The control plane's threads call it, as ControlHandler says.
class Inbound final : public ControlHandler {
 public:
  struct To {
    const PeerTable& table;
    Peers& peers;
    Grants& grants;
    Imports& imports;
    Messages& messages;
    Credits& credits;
    Reopening& reopening;
    Verification& verification;
  };
  explicit Inbound(const To& to) : to_(to) {}

  Result<std::vector<RailOut>> meet(LinkId link, const Introduction& self, const Introduction& peer,
                                    const Nearness& near) override {
    return to_.peers.meet(link, self, peer, near);
  }
  void up(LinkId link, bool incoming) override { to_.peers.up(link, incoming); }
  void received(LinkId link, Notice notice) override;
  void health(LinkId link, Health health) override { to_.peers.health(link, health); }
  std::uint64_t taken_from(LinkId link) override;
  void leaving(LinkId link, std::uint64_t taken) override;
  void down(LinkId link, LinkEnd how, const Error& why) override { to_.peers.down(link, how, why); }

 private:
  const To to_;
};

}  // namespace weft::core
