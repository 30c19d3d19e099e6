// The keys by which peers reach this engine's memory: making them, and keeping a holder out that
// does not stop by itself.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>
#include <weft/grant.hpp>

#include "base/sync.hpp"
#include "lease/key_replacements.hpp"
#include "lease/owned_grants.hpp"
#include "memory/arrival_flush.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/peer_table.hpp"

namespace weft::core {

/// From any thread; calls may block for registration.
class PeerKeys {
 public:
  PeerKeys(const Rails& rails, Workers& workers, const PeerTable& peers, ArrivalFlush& arrivals,
           OwnedGrants& owned, OwnedGrants::Tell tell);

  /// Held from before a grant is described until it is among the owned ones: no key is replaced
  /// meanwhile.
  Mutex& describing() noexcept WEFT_RETURNS(describing_) { return describing_; }
  /// Gives the grant, whose ranges are known, its keys: one for each rail and each extent that its
  /// ranges touch.
  Result<void> describe(GrantState::Parts& grant, Keys asked) WEFT_REQUIRES(describing_);

  /// Whether holders of other grants have to have stopped using a key before it is closed.
  enum class Bystanders : std::uint8_t { drain, may_lose };
  /// Replaces the shared keys that a holder of the grant may have that must be kept out
  /// (GrantState::uncut). Other grants go on with new ones. False if their holders have not all
  /// answered at the deadline, and must: it is under way, and may be asked for again.
  bool cut_off(const GrantState& grant, Deadline deadline, Bystanders bystanders);

  /// Closes what can be.
  void settle() { replacements_.close_answered(); }
  void clear() { replacements_.clear(); }
  // What peers say.
  void take(LinkId from, const KeysDrained& notice) { replacements_.take(from, notice); }
  void link_down(LinkId link) { replacements_.link_down(link); }

 private:
  using KeyPtr = std::shared_ptr<ExtentKey>;
  struct Wanted;
  using Made = std::map<std::pair<std::size_t, std::size_t>, KeyPtr>;  // by rail and extent
  std::vector<Rail*> rails_that_reach(GrantState::Parts& grant) const;
  Result<void> register_touched(const Wanted& wanted, const std::vector<Rail*>& rails, Made& made);
  void add(GrantState::Parts& grant, KeyPtr key) const;
  static void stage(GrantState::Parts& grant, const std::vector<Rail*>& rails, const Error& why);
  Result<KeyPtr> make(const Wanted& wanted, Rail& rail, std::size_t extent);
  Result<std::unique_ptr<providers::Registration>> register_part(const SegmentState& segment,
                                                                 Rail& rail, const Range& part,
                                                                 Rights rights) const;
  std::vector<std::uint64_t> begin_cut(const GrantState& grant) WEFT_EXCLUDES(describing_);
  std::uint64_t replace(const SegmentState& segment, const std::vector<KeyPtr>& keys, Rights rights,
                        const std::vector<OwnedGrants::GrantPtr>& bystanders);

  const Rails& rails_;
  Workers& workers_;
  const PeerTable& peers_;
  ArrivalFlush& arrivals_;
  OwnedGrants& owned_;
  const OwnedGrants::Tell tell_;
  Mutex describing_;
  KeyReplacements replacements_;
};

}  // namespace weft::core
