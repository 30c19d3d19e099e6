#include "fabric.hpp"

namespace weft::efa_sim {
namespace {

/// A link-local address that tells the host and the NIC.
Gid gid_of(std::uint32_t host, std::size_t index) {
  const auto byte = [](std::size_t value) { return static_cast<std::uint8_t>(value); };
  return {0xfe, 0x80,           0, 0, 0, 0, 0, 0, 0x0e, 0xfa, byte(host >> 8), byte(host), 0, 0,
          0,    byte(index + 1)};
}

}  // namespace

Fabric::Fabric(std::vector<NicDescription> nics, std::uint64_t seed, std::string_view settings)
    : settings_(settings), descriptions_(std::move(nics)), seed_(seed) {}

void Fabric::configure(std::string_view text) {
  settings_.apply(text);
  for (auto& [place, nic] : nics_) nic.configure(settings_.of(place.host, nic.description.name));
}

bool Fabric::advance(Time now) {
  bool moved = false;
  for (auto& [place, nic] : nics_) moved |= nic.advance(now);
  return moved;
}

bool Fabric::busy() const {
  for (const auto& [place, nic] : nics_) {
    if (nic.busy()) return true;
  }
  return false;
}

Counters Fabric::counters() const {
  Counters sum{};
  for (const auto& [place, nic] : nics_) {
    sum.operations += nic.counters.operations;
    sum.packets += nic.counters.packets;
    sum.overtakes += nic.counters.overtakes;
    sum.duplicates += nic.counters.duplicates;
    sum.not_ready += nic.counters.not_ready;
    sum.refused += nic.counters.refused;
    sum.full_queues += nic.counters.full_queues;
  }
  return sum;
}

Registrations Fabric::registrations(pid_t process) const {
  Registrations sum{};
  for (const auto& [place, nic] : nics_) {
    const Registrations of_nic = nic.regions.of(process);
    sum.made += of_nic.made;
    sum.regions += of_nic.regions;
    sum.pages += of_nic.pages;
  }
  return sum;
}

Nic& Fabric::nic(std::uint32_t host, std::size_t index) {
  const Place place{host, index};
  const auto found = nics_.find(place);
  if (found != nics_.end()) return found->second;
  const NicDescription& description = descriptions_.at(index);
  const std::uint64_t seed = seed_ + host * 1000 + index;
  Nic& made = nics_.try_emplace(place, *this, description, gid_of(host, index), seed).first->second;
  made.configure(settings_.of(host, description.name));
  return made;
}

Nic* Fabric::find(const Gid& gid) {
  for (auto& [place, nic] : nics_) {
    if (nic.gid == gid) return &nic;
  }
  return nullptr;
}

}  // namespace weft::efa_sim
