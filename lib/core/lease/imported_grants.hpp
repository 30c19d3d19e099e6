// The grants of peers that an engine uses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/completion_slot.hpp"
#include "base/sync.hpp"
#include "base/thread.hpp"
#include "control/control.hpp"
#include "lease/remote_state.hpp"

namespace weft::core {

/// The holder's half of the protocol of leases (lib/core/lease/README.md); OwnedGrants is the
/// other. From any thread.
class ImportedGrants {
 public:
  using RemotePtr = std::shared_ptr<RemoteState>;
  using Tell = std::function<void(LinkId, Notice)>;
  /// Ends the transfers that use it, with this error: nothing more of them goes out.
  using Stop = std::function<void(RemoteState&, const Error&)>;
  /// Runs what may block, on another thread than those that must not.
  using Aside = std::function<void(std::function<void()>)>;
  /// Whether this process would map what is lent to it.
  using Maps = std::function<bool()>;
  /// `outliving`: likewise, for what may still be begun when this is gone.
  ImportedGrants(
      Tell tell, Stop stop, Aside aside, Maps maps,
      Aside outliving = [](const std::function<void()>& task) { run_detached(task); })
      : tell_(std::move(tell)),
        stop_(std::move(stop)),
        aside_(std::move(aside)),
        outliving_(std::move(outliving)),
        maps_(std::move(maps)) {}

  RemotePtr find(std::uint64_t lease, const PeerState& peer) const;
  /// The same grant has one state, however often it is imported. Its owner is asked whether it
  /// (still) holds: `answer` completes with an error if it does not, or can't be asked.
  struct Added {
    RemotePtr remote;
    std::shared_ptr<CompletionSlot> answer;
  };
  Added add(const RemotePtr& remote);
  /// Those in use, of one peer, or of all if it is null.
  std::vector<RemotePtr> of(const PeerState* peer) const;
  /// This engine leaves a peer (all if it is null): tells it of each of its grants that nothing is
  /// out under, and that it will not be used any more.
  void give_back(const PeerState* peer);

  // The owners' answers.
  void take(const PeerState& from, const GrantStatus& status);
  void take(const PeerState& from, const RevokeRequest& request);
  void take(const PeerState& from, const std::vector<RenewedKey>& renewed);
  void take(const PeerState& from, const LeaseRenewed& renewed);
  void take(const PeerState& from, const KeysReplaced& replaced);
  /// It has closed that rail, and opened it at another address that nothing was sent to yet.
  void rail_closed(const PeerState& owner, std::uint32_t rail);
  /// Questions to that peer won't be answered.
  void link_down(LinkId link, const Error& why);

 private:
  struct Query {
    RemotePtr remote;
    std::shared_ptr<CompletionSlot> answer;
    Clock::time_point asked;
  };
  /// By the link to the owner and the number of the lease.
  using Key = std::pair<LinkId, std::uint64_t>;
  static Key key_of(const RemoteState& remote);
  /// One that this engine holds as far as its owner knows, in use or not.
  struct Import {
    std::weak_ptr<RemoteState> remote;
    std::shared_ptr<Borrowed> borrowed;
    std::shared_ptr<Strays> strays;
    bool held = false;  // its owner has said so once, and will ask for a confirmation
  };
  void ask(const RemotePtr& remote, const std::shared_ptr<CompletionSlot>& answer)
      WEFT_REQUIRES(mutex_);
  std::shared_ptr<Borrowed> left_over(const Key& key) const WEFT_REQUIRES(mutex_);
  void confirm(const Key& key);
  void let_go(const Import& import);
  void close_and_confirm(const Key& key, const std::shared_ptr<Borrowed>& borrowed);
  std::vector<Import> imports_of(const PeerState* peer) const;

  const Tell tell_;
  const Stop stop_;
  const Aside aside_, outliving_;
  const Maps maps_;
  mutable Mutex mutex_;
  std::map<Key, Import> imports_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Query> queries_
      WEFT_GUARDED_BY(mutex_);  // by the number of the request
  std::uint64_t next_request_ WEFT_GUARDED_BY(mutex_) = 1;
};

}  // namespace weft::core
