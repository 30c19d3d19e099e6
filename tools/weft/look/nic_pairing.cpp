#include "look/nic_pairing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/layout.hpp"
#include "common/printable.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<double> speeds(const Machine& machine, const std::vector<std::size_t>& nics) {
  std::vector<double> gbps;
  for (const std::size_t nic : nics) gbps.push_back(machine.topology.nics[nic].gbps);
  return gbps;
}

NicPairing pair(const Machine& own, std::vector<std::size_t> own_nics, const Machine& peer,
                std::vector<std::size_t> peer_nics) {
  const std::vector<double> here = speeds(own, own_nics), there = speeds(peer, peer_nics);
  return {std::move(own_nics), std::move(peer_nics), pair_nics(here, there),
          pair_nics(there, here)};
}

double percent(const NicShare& share, const std::vector<NicShare>& all) {
  double sum = 0;
  for (const NicShare& each : all) sum += static_cast<double>(each.weight);
  return sum > 0 ? 100 * static_cast<double>(share.weight) / sum : 0;
}

/// One side's NICs and whom they talk to.
struct NicDirection {
  const Machine& from;
  const std::vector<std::size_t>& nics;
  const std::vector<std::vector<NicShare>>& shares;
  const Machine& to;
  const std::vector<std::size_t>& others;

  const std::string& name(std::size_t at) const { return from.topology.nics[nics[at]].name; }
  const std::string& other(const NicShare& share) const {
    return to.topology.nics[others[share.nic]].name;
  }
};

NicDirection outward(const NicPairing& pairs, const Machine& own, const Machine& peer) {
  return {own, pairs.own, pairs.to_peer, peer, pairs.peer};
}

NicDirection inward(const NicPairing& pairs, const Machine& own, const Machine& peer) {
  return {peer, pairs.peer, pairs.to_own, own, pairs.own};
}

std::string text(const NicDirection& direction, const std::string& indent) {
  std::string out;
  for (std::size_t at = 0; at < direction.shares.size(); ++at) {
    std::vector<std::string> others;
    for (const NicShare& share : direction.shares[at])
      others.push_back(fmt::format("{} {:.4g} %{}", printable(direction.other(share)),
                                   percent(share, direction.shares[at]),
                                   &share == &direction.shares[at].back() ? "" : ","));
    const std::string name = fmt::format("{}{:<14} ", indent, printable(direction.name(at)));
    const std::size_t longest = std::max<std::size_t>(line_width(), name.size() + 20) - name.size();
    const std::string next_line = "\n" + std::string(name.size(), ' ');
    out += fmt::format("{}{}\n", name, fmt::join(wrapped(others, longest), next_line));
  }
  return out.empty() ? indent + "none\n" : out;
}

std::string text(const NicPairing& pairs, const Machine& own, const Machine& peer,
                 const std::string& indent) {
  return fmt::format("{0}to the peer\n{1}{0}from the peer\n{2}", indent,
                     text(outward(pairs, own, peer), indent + "  "),
                     text(inward(pairs, own, peer), indent + "  "));
}

OrderedJson direction_json(const NicDirection& direction) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t at = 0; at < direction.shares.size(); ++at) {
    OrderedJson others = OrderedJson::array();
    for (const NicShare& share : direction.shares[at])
      others.push_back(
          {{"nic", direction.other(share)}, {"percent", percent(share, direction.shares[at])}});
    list.push_back({{"nic", direction.name(at)}, {"with", std::move(others)}});
  }
  return list;
}

}  // namespace

MachinePairing pair_machines(const Machine& own, const Machine& peer) {
  MachinePairing pairing{pair(own, own.preferred, peer, peer.preferred), {}};
  for (std::size_t gpu = 0; gpu < std::min(own.gpus.size(), peer.gpus.size()); ++gpu)
    pairing.gpus.push_back(pair(own, serving(own.gpus[gpu]), peer, serving(peer.gpus[gpu])));
  return pairing;
}

std::string pairing_text(const MachinePairing& pairing, const Machine& own, const Machine& peer) {
  std::string out = "\n  NICs that talk to each other, and how much of their traffic it is\n" +
                    text(pairing.all, own, peer, "    ");
  for (std::size_t gpu = 0; gpu < pairing.gpus.size(); ++gpu)
    out +=
        fmt::format("\n  GPU {} here ({}) and there ({})\n", gpu,
                    printable(own.topology.gpus[gpu].pci), printable(peer.topology.gpus[gpu].pci)) +
        text(pairing.gpus[gpu], own, peer, "    ");
  return out;
}

OrderedJson pairing_json(const MachinePairing& pairing, const Machine& own, const Machine& peer) {
  OrderedJson gpus = OrderedJson::array();
  for (std::size_t gpu = 0; gpu < pairing.gpus.size(); ++gpu)
    gpus.push_back({{"own", own.topology.gpus[gpu].pci},
                    {"peer", peer.topology.gpus[gpu].pci},
                    {"to_peer", direction_json(outward(pairing.gpus[gpu], own, peer))},
                    {"from_peer", direction_json(inward(pairing.gpus[gpu], own, peer))}});
  return {{"to_peer", direction_json(outward(pairing.all, own, peer))},
          {"from_peer", direction_json(inward(pairing.all, own, peer))},
          {"gpus", std::move(gpus)}};
}

}  // namespace weft::tool
