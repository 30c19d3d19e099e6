#include "weights/plan/loads.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace weft::weights {

double nic_speed(const Rank& rank) noexcept {
  return rank.nics * rank.gbps * 1e9 / 8;
}

Loads::Loads(const World& world) {
  std::unordered_map<std::string_view, std::uint32_t> hosts;
  std::uint32_t next = 0;
  const auto add = [&](const std::vector<Rank>& ranks, std::vector<Busy>& busy) {
    for (const Rank& rank : ranks) {
      std::uint32_t host = next;
      if (!rank.host.empty()) host = hosts.try_emplace(rank.host, next).first->second;
      if (host == next) ++next;
      busy.push_back({host, nic_speed(rank)});
    }
  };
  add(world.publishers, publishers_);
  add(world.subscribers, subscribers_);
}

const Loads::Busy& Loads::busy(Party party) const noexcept {
  return party.side == Side::publisher ? publishers_[party.rank] : subscribers_[party.rank];
}

bool Loads::on_host(Party from, std::uint32_t to) const noexcept {
  return busy(from).host == subscribers_[to].host;
}

std::uint32_t Loads::host_of(Party party) const noexcept {
  return busy(party).host;
}

Holder Loads::sender(std::span<const Holder> publishers, std::uint32_t to) const noexcept {
  const std::uint32_t host = subscribers_[to].host;
  const auto better = [&](const Holder& a, const Holder& b) {
    const Busy &x = publishers_[a.rank], &y = publishers_[b.rank];
    const bool x_near = x.host == host, y_near = y.host == host;
    if (x_near != y_near) return x_near;
    return x_near ? x.on_host < y.on_host : x.by_nics < y.by_nics;
  };
  return *std::min_element(publishers.begin(), publishers.end(), better);
}

void Loads::sends(Party from, std::uint32_t to, std::uint64_t bytes) noexcept {
  Busy& sender = from.side == Side::publisher ? publishers_[from.rank] : subscribers_[from.rank];
  if (on_host(from, to))
    sender.on_host += static_cast<double>(bytes);
  else
    sender.by_nics += static_cast<double>(bytes) / sender.speed;
}

}  // namespace weft::weights
