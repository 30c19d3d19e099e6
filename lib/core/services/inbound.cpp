#include "services/inbound.hpp"

#include <utility>
#include <variant>

namespace weft::core {
namespace {

/// By the type of the notice: a new one that is not in here does not compile.
struct Dispatch {
  const Inbound::To& to;
  PeerState& peer;

  void operator()(LookupRequest&& notice) const { to.grants.take(peer, std::move(notice)); }
  void operator()(LookupAbandoned&& notice) const { to.grants.take(peer, notice); }
  void operator()(RevokeConfirmed&& notice) const { to.grants.take(peer, notice); }
  void operator()(GrantQuery&& notice) const { to.grants.take(peer, notice); }
  void operator()(const KeysDrained& notice) const { to.grants.take(peer, notice); }

  void operator()(LookupReply&& notice) const { to.imports.take(peer, std::move(notice)); }
  void operator()(const LeaseRenewed& notice) const { to.imports.take(peer, notice); }
  void operator()(RevokeRequest&& notice) const { to.imports.take(peer, notice); }
  void operator()(GrantStatus&& notice) const { to.imports.take(peer, notice); }
  void operator()(const KeysReplaced& notice) const { to.imports.take(peer, notice); }

  void operator()(SignalFailed&& notice) const { to.messages.take(peer, notice); }
  void operator()(FallbackMessage&& notice) const { to.messages.take(peer, std::move(notice)); }
  void operator()(FallbackTaken&& notice) const { to.messages.take(peer, notice); }

  void operator()(const CreditsGivenBack& notice) const { to.credits.take(peer, notice); }
  void operator()(const BounceCredits& notice) const { to.credits.take(peer, notice); }

  void operator()(CheckRequest&& notice) const { to.verification.take(peer, notice); }
  void operator()(CheckReply&& notice) const { to.verification.take(peer, notice); }

  void operator()(RailMoved&& notice) const {
    to.imports.take(peer, notice);
    to.reopening.take(peer, std::move(notice));
  }
  void operator()(RailFollowed&& notice) const { to.reopening.take(peer, notice); }
};

}  // namespace

void Inbound::received(LinkId link, Notice notice) {
  const auto peer = to_.table.find(link);
  if (!peer) return;
  std::visit(Dispatch{to_, *peer}, std::move(notice));
}

std::uint64_t Inbound::taken_from(LinkId link) {
  const auto peer = to_.table.find(link);
  return peer ? peer->packets_taken.load(std::memory_order_acquire) : 0;
}

void Inbound::leaving(LinkId link, std::uint64_t taken) {
  if (const auto peer = to_.table.find(link)) to_.messages.peer_leaves(peer, taken);
}

}  // namespace weft::core
