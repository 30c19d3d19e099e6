// Grants under names: those that this engine has published, and those that it looks up at peers'.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/place.hpp>

#include "base/completion_slot.hpp"
#include "base/sync.hpp"
#include "control/control.hpp"

namespace weft::core {

/// A lookup under way at a peer's.
struct LookupState : CompletionSlot {
  LinkId link = 0;
  Blob grant;
};

/// From any thread.
class Directory {
 public:
  // Published names. A lookup that comes before its name is published waits here.
  struct Asker {
    LinkId link = 0;
    std::uint64_t request = 0;
  };
  /// Returns the peers that wait for the name.
  std::vector<Asker> publish(const std::string& name, Blob grant, std::uint64_t lease);
  /// Forgets the names that a grant was published under.
  void withdraw(std::uint64_t lease);
  /// The grant, or empty: then the asker is remembered. An error if a peer has asked too much.
  Result<std::optional<Blob>> ask(const std::string& name, Asker asker);
  void forget(Asker asker);

  // Lookups of ours, by the number of the request.
  void add_lookup(std::uint64_t request, std::shared_ptr<LookupState> lookup);
  std::shared_ptr<LookupState> take_lookup(std::uint64_t request);

  /// The link is gone: lookups that wait for it end with `why`.
  void link_down(LinkId link, const Error& why);

 private:
  struct Published {
    Blob grant;
    std::uint64_t lease = 0;
  };
  mutable Mutex mutex_;
  std::map<std::string, Published> published_ WEFT_GUARDED_BY(mutex_);
  // The names that each lease was published under: of another grant's by now, perhaps.
  std::map<std::uint64_t, std::set<std::string>> names_ WEFT_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Asker>> askers_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::shared_ptr<LookupState>> lookups_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
