// The traffic with each peer by its name, of those that are gone too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/sync.hpp"
#include "peer/peer_traffic.hpp"

namespace weft::core {

/// From any thread. Peers come and go without end, and what is known of them must not grow so: of
/// those that are gone, `most_gone` keep their names, and the others are added up.
class TrafficByPeer {
 public:
  static constexpr std::size_t most_gone = 64;  // guess
  /// The name that stands for those others. A peer that is called so is one of them.
  static constexpr const char* others = "(others)";

  explicit TrafficByPeer(std::size_t rails) : rails_(rails) {}

  /// The same for each peer of a name. The peer counts as gone once nobody else holds it.
  std::shared_ptr<PeerTraffic> of(const std::string& name);
  /// By name, fit for a label.
  std::map<std::string, PeerTraffic::Totals> read() const;

 private:
  struct Entry {
    std::shared_ptr<PeerTraffic> traffic;
    std::uint64_t last_seen = 0;  // the last sweep by which it was not gone
  };
  void sweep() WEFT_REQUIRES(mutex_);

  const std::size_t rails_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> by_name_ WEFT_GUARDED_BY(mutex_);
  PeerTraffic::Totals others_ WEFT_GUARDED_BY(mutex_);
  bool some_dropped_ WEFT_GUARDED_BY(mutex_) = false;
  std::uint64_t sweeps_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::core
