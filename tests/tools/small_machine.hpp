// A machine made by hand: two nodes, and below each a switch with a GPU, two NICs and a drive.
#pragma once

#include <weft/topology.hpp>

namespace weft::tool {

inline Topology small_machine() {
  Topology made;
  made.nodes = {{0, 0, std::uint64_t{64} << 30, {10, 21}},
                {1, 1, std::uint64_t{64} << 30, {21, 10}}};
  made.switches = {{"0000:[10-1f]", -1, 0, 0},
                   {"0000:11:00.0", 0, 0, 252},
                   {"0000:[20-2f]", -1, 1, 0},
                   {"0000:21:00.0", 2, 1, 252}};
  made.gpus = {{"0000:12:00.0", "GH100 [H100]", 1, 0, 504},
               {"0000:22:00.0", "GH100 [H100]", 3, 1, 504}};
  made.nics = {{NicKind::network, "eth0", "eth0", "0000:00:05.0", -1, 0, 25},
               {NicKind::efa, "rdmap19s0", "", "0000:13:00.0", 1, 0, 100},
               {NicKind::efa, "rdmap20s0", "", "0000:14:00.0", 1, 0, 100},
               {NicKind::efa, "rdmap35s0", "", "0000:23:00.0", 3, 1, 100},
               {NicKind::efa, "rdmap36s0", "", "0000:24:00.0", 3, 1, 100}};
  made.drives = {{"nvme0n1", "0000:15:00.0", "A drive", std::uint64_t{3} << 30, 1, 0, 63},
                 {"nvme1n1", "0000:25:00.0", "", 0, 3, 1, 0}};
  made.unplaced = {{"lo", "it is no device"}};
  return made;
}

/// Breaks out of a label, a string, a comment and a terminal, if it is let.
inline const std::string hostile = "\"]}; <B>&amp;</TABLE>>\\N\x1b[31m\n\xff\xe2\x80\xae\xc2\x9b";

/// Likewise everywhere.
inline Topology hostile_machine() {
  Topology made = small_machine();
  for (PciSwitch& each : made.switches) each.pci = hostile;
  for (Gpu& each : made.gpus) each.pci = each.name = hostile;
  for (Nic& each : made.nics) each.pci = each.name = each.interface = hostile;
  for (Drive& each : made.drives) each.pci = each.name = each.model = hostile;
  for (Unplaced& each : made.unplaced) each.name = each.reason = hostile;
  return made;
}

}  // namespace weft::tool
