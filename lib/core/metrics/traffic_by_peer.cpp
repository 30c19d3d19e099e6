#include "metrics/traffic_by_peer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace weft::core {
namespace {

/// Names come from outside, and Prometheus refuses a page that is not all UTF-8.
std::string label_from(const std::string& name) {
  using nlohmann::json;
  return json::parse(json(name).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

std::shared_ptr<PeerTraffic> TrafficByPeer::of(const std::string& name) {
  const Lock lock(mutex_);
  std::shared_ptr<PeerTraffic>& entry = by_name_[label_from(name)].traffic;
  if (!entry) entry = std::make_shared<PeerTraffic>(rails_);
  auto traffic = entry;
  sweep();
  return traffic;
}

void TrafficByPeer::sweep() {
  ++sweeps_;
  std::vector<decltype(by_name_)::iterator> gone;  // those longest gone first
  for (auto each = by_name_.begin(); each != by_name_.end(); ++each) {
    if (each->second.traffic.use_count() > 1)
      each->second.last_seen = sweeps_;
    else
      gone.push_back(each);
  }
  if (gone.size() <= most_gone) return;
  std::stable_sort(gone.begin(), gone.end(), [](const auto& a, const auto& b) {
    return a->second.last_seen < b->second.last_seen;
  });
  gone.resize(gone.size() - most_gone);
  for (const auto& each : gone) {
    others_ += each->second.traffic->read();
    by_name_.erase(each);
  }
  some_dropped_ = true;
}

std::map<std::string, PeerTraffic::Totals> TrafficByPeer::read() const {
  std::map<std::string, PeerTraffic::Totals> totals;
  const Lock lock(mutex_);
  for (const auto& [name, entry] : by_name_) totals.emplace(name, entry.traffic->read());
  if (some_dropped_) totals[others] += others_;
  return totals;
}

}  // namespace weft::core
