// Which of the NICs that were seen are used. A pure function: it looks at nothing but its
// arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/capability.hpp>
#include <weft/error.hpp>

namespace weft::providers {

/// One way to one NIC, as a look at the machine found it, before any choice.
struct FoundNic {
  std::string provider;  // Weft's name: "efa"
  std::string title;     // for people: "tcp (net)"
  std::string domain;    // the NIC; empty if none was found
  std::string fabric;
  bool is_nic = true;         // else it is memory, and NICs are not chosen by its name
  std::string ip;             // by which it is reached; empty: by another kind of address
  bool chosen_by_ip = false;  // only the interface with Wanted::rail_address serves
  unsigned way = 0;           // of those of its provider (ProviderName::ways)
  std::string pci;            // "0000:4f:00.0"; empty: unknown, or none
  double gbps = 0;            // 0: unknown
  int numa_node = -1;         // -1: unknown
  std::string score;          // the reason for it, as a sentence
  std::string problem;        // why it can't be used at all; empty: it can
};

/// A provider of this build.
struct ProviderName {
  std::string_view name;
  bool by_itself = true;  // used without being named
  /// In which ways it is had, by libfabric's names, best first; at least one.
  std::vector<std::string_view> ways;
};

/// The part of the engine's configuration that chooses NICs (see Config).
struct Wanted {
  std::vector<std::string> providers;
  std::vector<std::string> allowed;  // by Weft's names; empty: all
  std::vector<std::string> nics;
  unsigned max_nics = 4;
  std::string rail_address;
  /// NICs by their nearness to the memory that shall be moved, best first: PCI addresses and names.
  /// Those that are not listed follow, those of other nodes last.
  std::vector<std::string> near_nics;
  std::vector<int> near_nodes;  // the NUMA nodes of this process's cores
  bool allow_emulation = true;
  /// NICs shall reach the memory of devices, where libfabric has such. It may start the devices'
  /// drivers in the process for that.
  bool device_memory = false;
};

/// A provider that NICs are taken from.
struct Choice {
  std::string_view provider;
  std::vector<unsigned> ways;  // only in these, best first
};

struct Selection {
  std::vector<std::size_t> taken;    // indices of found_nics, best first
  std::vector<std::string> reasons;  // why each was used or not
};

/// `known`: the providers of this build, best first. Fails if something that was named is not
/// there, or can't be used.
Result<Selection> select(std::span<const FoundNic> seen, std::span<const ProviderName> known,
                         const Wanted& wanted);

/// Why a rail that was opened must not be used after all; empty if it may. Whether operations are
/// emulated shows only then.
std::string reject_reason(const Capability& record, const Wanted& wanted);

/// The providers that `terms`, as in Config::providers, allow, best first. Skips unknown names.
std::vector<Choice> choices_of(std::span<const ProviderName> known,
                               std::span<const std::string> terms);

}  // namespace weft::providers
