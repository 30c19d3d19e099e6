// An engine's own grants, those it published, and those it imported.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/completion_slot.hpp"
#include "control/control.hpp"
#include "memory/grant_state.hpp"
#include "memory/remote_state.hpp"

namespace weft::core {

/// A lookup under way at a peer's.
struct LookupState : CompletionSlot {
  LinkId link = 0;
  Blob grant;
};

/// A revocation, complete when every peer that was asked has confirmed or gone.
struct RevokeWait : CompletionSlot {
  std::mutex mutex;
  std::vector<LinkId> open;
  bool some_went = false;  // without confirming
};

class GrantTable {
 public:
  // Own grants.
  void add(const std::shared_ptr<GrantState>& grant);
  std::shared_ptr<GrantState> find(std::uint64_t lease) const;
  std::vector<std::shared_ptr<GrantState>> of_segment(const SegmentState& segment) const;
  /// Also forgets the names it was published under.
  void remove(std::uint64_t lease);
  /// Closes all keys and forgets everything: the rails are going.
  void clear();
  /// Keeps a grant that a peer may still use, and its memory, for as long as the engine is open.
  void quarantine(const std::shared_ptr<GrantState>& grant);
  bool quarantined(const SegmentState& segment) const;

  // Published names. A lookup that comes before its name is published waits here.
  struct Asker {
    LinkId link = 0;
    std::uint64_t request = 0;
  };
  /// Returns those who wait for the name.
  std::vector<Asker> publish(const std::string& name, Blob grant, std::uint64_t lease);
  /// The grant, or empty: then the asker is remembered. An error if a peer has asked too much.
  Result<std::optional<Blob>> ask(const std::string& name, Asker asker);
  void forget(Asker asker);

  // Lookups and revocations of ours, by request number.
  void add_lookup(std::uint64_t request, std::shared_ptr<LookupState> lookup);
  std::shared_ptr<LookupState> take_lookup(std::uint64_t request);
  void add_revoke(std::uint64_t request, std::shared_ptr<RevokeWait> wait);
  void remove_revoke(std::uint64_t request);
  void revoke_confirmed(std::uint64_t request, LinkId link);
  void peer_lost(std::uint64_t request, LinkId link);

  // Questions about imported grants, by request number.
  void add_query(std::uint64_t request, std::shared_ptr<RemoteState> remote);
  std::shared_ptr<RemoteState> take_query(std::uint64_t request);

  // Imported grants.
  std::shared_ptr<RemoteState> imported(std::uint64_t lease, const PeerState& peer) const;
  /// The same grant has one state, whoever imports it first: its revocation waits for all users.
  std::shared_ptr<RemoteState> add_import(const std::shared_ptr<RemoteState>& remote);
  void forget_import(const RemoteState& remote);

  /// The link is gone: whoever waits for something from it hears `why`.
  void link_down(LinkId link, const Error& why);

 private:
  struct Published {
    Blob grant;
    std::uint64_t lease = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<GrantState>> grants_;
  std::vector<std::shared_ptr<GrantState>> quarantined_;
  std::map<std::string, Published> published_;
  std::map<std::string, std::vector<Asker>> askers_;
  std::unordered_map<std::uint64_t, std::shared_ptr<LookupState>> lookups_;
  std::unordered_map<std::uint64_t, std::shared_ptr<RevokeWait>> revokes_;
  std::unordered_map<std::uint64_t, std::shared_ptr<RemoteState>> queries_;
  std::unordered_map<std::uint64_t, std::weak_ptr<RemoteState>> imports_;

  void settle_revoke(std::uint64_t request, LinkId link, bool went);
};

}  // namespace weft::core
