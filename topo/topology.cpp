#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <weft/topology.hpp>

namespace weft {
namespace {

/// Without the zeros before the domain, which are written in two lengths or left out: "53:00.0".
std::string plain(std::string_view pci) {
  std::string text(pci);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (std::count(text.begin(), text.end(), ':') != 2) return text;
  const std::size_t domain = std::min(text.find_first_not_of('0'), text.find(':'));
  return text[domain] == ':' ? text.substr(domain + 1) : text.substr(domain);
}

}  // namespace

std::vector<std::size_t> preferred_nics(const Topology& topology) {
  const auto all_that = [&](auto wanted) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < topology.nics.size(); ++i)
      if (!topology.nics[i].down && wanted(topology.nics[i])) found.push_back(i);
    return found;
  };
  for (const NicKind kind : {NicKind::efa, NicKind::rdma, NicKind::network}) {
    auto any = all_that([&](const Nic& nic) { return nic.kind == kind; });
    if (kind == NicKind::efa && !any.empty()) return any;
    auto known = all_that([&](const Nic& nic) { return nic.kind == kind && nic.gbps > 0; });
    if (!known.empty()) return known;
    if (!any.empty()) return any;
  }
  return {};
}

Result<int> find_gpu(const Topology& topology, std::string_view pci) {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    if (plain(topology.gpus[i].pci) == plain(pci)) return static_cast<int>(i);
    known.push_back(topology.gpus[i].pci);
  }
  return fail(Code::not_found, known.empty() ? fmt::format("there is no GPU {}, nor any other", pci)
                                             : fmt::format("there is no GPU {}; there are: {}", pci,
                                                           fmt::join(known, ", ")));
}

std::string_view to_string(NicKind kind) noexcept {
  switch (kind) {
    case NicKind::efa:
      return "efa";
    case NicKind::rdma:
      return "rdma";
    case NicKind::network:
      break;
  }
  return "network";
}

std::string_view to_string(Nearness nearness) noexcept {
  switch (nearness) {
    case Nearness::pci_switch:
      return "pci_switch";
    case Nearness::root_complex:
      return "root_complex";
    case Nearness::numa_node:
      return "numa_node";
    case Nearness::machine:
      break;
  }
  return "machine";
}

}  // namespace weft
