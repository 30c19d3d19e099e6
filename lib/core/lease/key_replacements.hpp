// Shared keys that were replaced, until nothing that holders posted with them is out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>
#include <weft/deadline.hpp>

#include "base/sync.hpp"
#include "control/control.hpp"
#include "memory/extent_key.hpp"

namespace weft::core {

/// The owner's half of the protocol; the holders' is ImportedGrants'. From any thread.
class KeyReplacements {
 public:
  struct Old {
    std::shared_ptr<ExtentKey> key;
    ExtentKey::Replaced replaced;
  };

  /// Returns the number of the request that these holders are to answer (KeysReplaced).
  std::uint64_t begin(std::vector<Old> old, std::set<LinkId> holders);
  /// The one under way in which that key is replaced; 0: none.
  std::uint64_t of(const ExtentKey& key) const;
  /// Waits until all holders have answered, or are gone. False if the deadline passed first.
  bool wait(std::uint64_t request, Deadline deadline) const;
  /// Closes the old keys, which may block; answers that have not come are not waited for. False if
  /// a peer is within a copy that this did not end: they are closed when it is asked again.
  bool close(std::uint64_t request);
  /// Closes those that all holders have answered.
  void close_answered();
  /// The rails are going.
  void clear();

  // The peers' answers.
  void take(LinkId from, const KeysDrained& drained);
  void link_down(LinkId link);

 private:
  struct Replacement {
    std::vector<Old> old;
    std::set<LinkId> unanswered;
  };

  mutable Mutex mutex_;
  mutable Condition changed_;
  std::map<std::uint64_t, Replacement> under_way_ WEFT_GUARDED_BY(mutex_);  // by request
  std::uint64_t next_ WEFT_GUARDED_BY(mutex_) = 1;
  Mutex closing_;  // keys, which may take long
};

}  // namespace weft::core
