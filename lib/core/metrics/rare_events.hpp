// What happens seldom and is of note, counted by its cause.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "control/link_end.hpp"
#include "lease/grant_end.hpp"

namespace weft::core {

/// One more than the last Code.
inline constexpr std::size_t codes = static_cast<std::size_t>(last_code) + 1;

struct RareCounts {
  using ByCode = std::array<std::uint64_t, codes>;
  using ByLinkEnd = std::array<std::uint64_t, link_ends.size()>;

  ByCode transfers_failed{}, expectations_failed{}, receives_failed{};
  ByLinkEnd peers_lost{}, connections_refused{};
  std::array<std::uint64_t, grant_ends.size()> grants_ended{};
  std::uint64_t grants_imported = 0;
};

/// From any thread.
class RareEvents {
 public:
  void transfer_failed(Code code) { count(&RareCounts::transfers_failed, code); }
  void expectation_failed(Code code) { count(&RareCounts::expectations_failed, code); }
  void receive_failed(Code code) { count(&RareCounts::receives_failed, code); }
  /// A link that was up.
  void peer_lost(LinkEnd how) { count(&RareCounts::peers_lost, how); }
  /// An incoming connection that did not become a link.
  void connection_refused(LinkEnd how) { count(&RareCounts::connections_refused, how); }
  void grant_ended(GrantEnd why) { count(&RareCounts::grants_ended, why); }
  void grant_imported() {
    const Lock lock(mutex_);
    ++counts_.grants_imported;
  }
  RareCounts read() const {
    const Lock lock(mutex_);
    return counts_;
  }

 private:
  template <typename Counts, typename Cause>
  void count(Counts RareCounts::*counts, Cause cause) {
    const Lock lock(mutex_);
    ++(counts_.*counts)[static_cast<std::size_t>(cause)];
  }

  mutable Mutex mutex_;
  RareCounts counts_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
