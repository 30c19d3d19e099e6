// Facts about machines. Where they are from:
//
// [ids]    pci.ids of pciutils: vendors, devices and their names, classes.
// [ec2]    AWS, "Amazon EC2 instance types: accelerated computing" and "Maximize network bandwidth
//          ... with multiple network cards": memory, number and speed of network cards.
// [nixl]   ai-dynamo/nixl, captures of instances in its tests: addresses and links of devices of
//          p3dn, p4d, p5, p5en, p6-b200, g5, g6 and c5n.
// [ofi]    aws/aws-ofi-nccl, topology/*.xml (p4d, g5) and its tests of NIC placement (p4d, p5en,
//          p6-b200, p6-b300).
// [fab]    ofiwg/libfabric, fabtests/pytest/efa: lspci of a p5en.
// [neuron] AWS Neuron documentation: lspci of a trn1.32xlarge in "Neuron Runtime Troubleshooting on
//          Trn1", addresses and NUMA nodes of a trn2 in "Neuron LS User Guide";
//          aws-neuron/connected-device-maps-over-efa-for-neuron: the EFA devices of both.
// [dgx]    NVIDIA, "DGX H100/H200 System User Guide", network modules: buses and names of NICs.
//
// What none of them tells is marked as assumed. Disks and other devices that do not matter are left
// out, but for a few.
#include "machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace weft::facts {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

using Functions = std::vector<Function>;

// --- Devices -------------------------------------------------------------------------------------

Function efa(const std::string& pci, const char* device, double link) {
  return {pci,
          "0200",
          fmt::format("1d0f:{}", device),
          link,
          "Elastic Fabric Adapter (EFA)",
          {{Kind::rdma, fmt::format("rdmap{}s{}", bus_of(pci), device_of(pci))}}};
}

/// In a slot of the first bus it is "ens5", elsewhere "enp71s0".
Function ena(const std::string& pci, double link = 0) {
  const std::string name = bus_of(pci) == 0 ? fmt::format("ens{}", device_of(pci))
                                            : fmt::format("enp{}s{}", bus_of(pci), device_of(pci));
  return {pci, "0200", "1d0f:ec20", link, "Elastic Network Adapter (ENA)", {{Kind::network, name}}};
}

Function nvidia(const std::string& pci, const char* device, double link, const char* name) {
  return {pci, "0302", fmt::format("10de:{}", device), link, name};
}

Function neuron(const std::string& pci, const char* device, const char* name) {
  // lspci calls a Trainium's class "System peripheral" [neuron]; links are assumed.
  return {pci, "0880", fmt::format("1d0f:{}", device), gen4_x16, name};
}

Function nvme(const std::string& pci, double link = 0) {
  return {pci,
          "0108",
          "1d0f:cd01",
          link,
          "NVMe SSD Controller",
          {{Kind::disk, fmt::format("nvme{}n1", bus_of(pci))}}};
}

/// The first root complex of an EC2 instance: console, EBS and (on some) the first ENA.
Function first_root(bool with_ena) {
  Functions below = {
      {"0000:00:01.3", "0000", "8086:7113", 0, "82371AB/EB/MB PIIX4 ACPI"},
      {"0000:00:03.0", "0300", "1d0f:1111", 0, ""},
      {"0000:00:04.0", "0108", "1d0f:8061", 0, "NVMe EBS Controller", {{Kind::disk, "nvme0n1"}}}};
  if (with_ena) below.push_back(ena("0000:00:05.0"));
  return root_complex(std::move(below));
}

/// A switch as instances from p5 on have them: two bridges one below the other from `first` on, and
/// a port for each device, numbered by the device's bus [nixl, fab]. All it has in common with
/// other switches is the socket.
Function switched(unsigned first, double uplink, Functions devices) {
  Functions ports;
  for (Function& device : devices) {
    const unsigned port = bus_of(device.pci) - (first + 3);
    ports.push_back(
        bridge(address(first + 2, port / 8, port % 8), device.link, {std::move(device)}));
  }
  return root_complex(
      {bridge(address(first), uplink, {bridge(address(first + 1), uplink, std::move(ports))})});
}

// --- Machines ------------------------------------------------------------------------------------

/// Two sockets of one node each. Distances are assumed.
Machine two_sockets(const char* name, const char* about, std::uint64_t bytes, Functions first,
                    Functions second) {
  return {name,
          about,
          {{{{0, bytes / 2, std::move(first)}}}, {{{1, bytes / 2, std::move(second)}}}},
          {},
          {{10, 21}, {21, 10}}};
}

Machine on_first_bus(const char* name, const char* about, std::uint64_t bytes, Functions devices) {
  Machine machine = two_sockets(name, about, bytes, {}, {});
  Function root = first_root(true);
  for (Function& device : devices) root.below.push_back(std::move(device));
  machine.roots = {std::move(root)};  // the hypervisor tells no node [nixl]
  return machine;
}

Machine p3dn() {
  Functions devices = {efa("0000:00:15.0", "efa0", 0)};
  for (unsigned slot = 0x16; slot <= 0x1d; ++slot)
    devices.push_back(nvidia(address(0, slot), "1db5", gen3_x16,  // link assumed
                             "GV100GL [Tesla V100 SXM2 32GB]"));
  return on_first_bus("p3dn", "p3dn.24xlarge: 8 V100, 1 EFA of 100 Gb/s", 768 * gib,
                      std::move(devices));
}

Machine g5() {
  Functions devices = {efa("0000:00:15.0", "efa0", 0)};
  for (unsigned slot = 0x16; slot <= 0x1d; ++slot)
    devices.push_back(nvidia(address(0, slot), "2237", gen1_x8, "GA102GL [A10G]"));
  return on_first_bus("g5", "g5.48xlarge: 8 A10G, 1 EFA of 100 Gb/s", 768 * gib,
                      std::move(devices));
}

Machine c5n() {
  return on_first_bus("c5n", "c5n.18xlarge: no GPU, 1 EFA of 100 Gb/s", 192 * gib,
                      {efa("0000:00:1f.0", "efa0", 0)});
}

/// hpc7g.16xlarge is the same for this purpose: one Graviton3E, one network card of 200 Gb/s [ec2].
/// The address and the number (efa2, whose other users have 200 Gb/s too) are assumed.
Machine c7gn() {
  Function root = first_root(true);
  root.below.push_back(efa("0000:00:06.0", "efa2", 0));
  return {"c7gn",
          "c7gn.16xlarge, hpc7g.16xlarge: no GPU, 1 socket, 1 EFA of 200 Gb/s",
          {{{{0, 128 * gib}}}},
          {std::move(root)}};
}

Function p4d_root(unsigned bus) {
  return root_complex({ena(address(bus)), efa(address(bus, 0x1b), "efa0", 0),
                       nvidia(address(bus, 0x1c), "20b0", gen4_x16, "GA100 [A100 SXM4 40GB]"),
                       nvidia(address(bus, 0x1d), "20b0", gen4_x16, "GA100 [A100 SXM4 40GB]"),
                       nvme(address(bus, 0x1e))});
}

Machine p4d() {
  Machine machine =
      two_sockets("p4d", "p4d.24xlarge: 8 A100, 4 EFA of 100 Gb/s, one for 2 GPUs", 1152 * gib,
                  {p4d_root(0x10), p4d_root(0x20)}, {p4d_root(0x90), p4d_root(0xa0)});
  machine.roots = {first_root(false)};
  return machine;
}

/// What a container sees that is confined to the first socket of a p4d: devices of the other one
/// are there, but nothing tells where.
Machine container() {
  Machine machine = p4d();
  machine.name = "container";
  machine.about = "p4d.24xlarge from a container that is confined to the first socket";
  for (Function& root : machine.packages[1].nodes[0].roots) machine.roots.push_back(root);
  machine.packages.pop_back();
  machine.distances.clear();
  machine.hidden = 1;
  return machine;
}

/// One GPU and 4 NICs at a switch, whose uplink is as wide as the link of one NIC. How many ENAs
/// there are depends on how an instance is started: one each here.
Machine p5_family(const char* name, const char* about, const char* device, const char* gpu) {
  const auto group = [&](unsigned first) {
    Functions devices = {ena(address(first + 3), gen3_x16)};
    for (unsigned i = 0; i < 4; ++i)
      devices.push_back(efa(address(first + 11 + i), "efa1", gen3_x16));
    devices.push_back(nvidia(address(first + 15), device, gen5_x16, gpu));
    devices.push_back(nvme(address(first + 16), gen3_x16));
    return switched(first, gen3_x16, std::move(devices));
  };
  return two_sockets(name, about, 2048 * gib,
                     {first_root(false), group(0x44), group(0x55), group(0x66), group(0x77)},
                     {group(0x88), group(0x99), group(0xaa), group(0xbb)});
}

Machine p5() {
  return p5_family("p5", "p5.48xlarge: 8 H100, 32 EFA of 100 Gb/s, 4 for a GPU", "2330",
                   "GH100 [H100 SXM5 80GB]");
}

/// Assumed to be a p5 with H200s; [ec2] tells the same number of network cards.
Machine p5e() {
  return p5_family("p5e", "p5e.48xlarge: 8 H200, 32 EFA of 100 Gb/s, 4 for a GPU", "2335",
                   "GH100 [H200 SXM 141GB]");
}

Machine p5en() {
  const auto group = [](unsigned first) {
    Functions devices = {ena(address(first + 3), gen4_x16)};
    for (unsigned i = 0; i < 4; ++i)
      devices.push_back(efa(address(first + 17 + i), "efa2", gen4_x16));
    for (unsigned i = 0; i < 2; ++i)
      devices.push_back(
          nvidia(address(first + 21 + i), "2335", gen5_x16, "GH100 [H200 SXM 141GB]"));
    devices.push_back(nvme(address(first + 23), gen4_x16));
    return switched(first, gen5_x16, std::move(devices));
  };
  return two_sockets("p5en", "p5en.48xlarge: 8 H200, 16 EFA of 200 Gb/s, 2 for a GPU", 2048 * gib,
                     {first_root(false), group(0x44), group(0x5d)}, {group(0x76), group(0x8f)});
}

Machine p6_b200() {
  const auto group = [](unsigned first, unsigned nic, unsigned gpu) {
    Functions devices = {ena(address(first + 3), gen4_x16)};
    for (unsigned i = 0; i < 2; ++i) devices.push_back(efa(address(nic + i), "efa3", gen5_x16));
    for (unsigned i = 0; i < 2; ++i)
      devices.push_back(nvidia(address(gpu + i), "2901", gen5_x16, "GB100 [B200]"));
    return switched(first, gen5_x16, std::move(devices));
  };
  return two_sockets("p6-b200", "p6-b200.48xlarge: 8 B200, 8 EFA of 400 Gb/s, one for a GPU",
                     2048 * gib,
                     {first_root(false), group(0x44, 0x4f, 0x51), group(0x55, 0x60, 0x62)},
                     {group(0x66, 0x71, 0x75), group(0x79, 0x84, 0x86)});
}

/// Addresses of NICs are from [ofi], their number and speed from [ec2]: 17 network cards, the first
/// with ENA alone. Assumed: the rest, in particular that they are efa3 and that each two of them
/// have a switch and a GPU of their own.
Machine p6_b300() {
  const auto group = [](unsigned first) {
    Functions devices;
    for (unsigned i = 0; i < 2; ++i)
      devices.push_back(efa(address(first + 10 + i), "efa3", gen5_x16));
    devices.push_back(nvidia(address(first + 12), "3182", gen5_x16, "GB110 [B300 SXM6 AC]"));
    return switched(first, gen5_x16, std::move(devices));
  };
  Functions first = {first_root(true)}, second;
  for (unsigned i = 0; i < 4; ++i) first.push_back(group(0x4c + 15 * i));
  for (unsigned i = 4; i < 8; ++i) second.push_back(group(0x4c + 15 * i));
  return two_sockets("p6-b300", "p6-b300.48xlarge: 8 B300, 16 EFA of 400 Gb/s, 2 for a GPU",
                     4096 * gib, std::move(first), std::move(second));
}

Machine g6() {
  const auto l4 = [](unsigned bus) {
    return nvidia(address(bus), "27b8", gen4_x16, "AD104GL [L4]");
  };
  return two_sockets(
      "g6", "g6.48xlarge: 8 L4, 1 EFA of 100 Gb/s, on the socket of 4 of them", 768 * gib,
      {first_root(true),
       switched(0x90, gen4_x16,  // the buses of bridges are assumed
                {efa(address(0x96), "efa1", gen4_x16), l4(0x9f), l4(0xa1), l4(0xa3), l4(0xa5)})},
      {switched(0xa8, gen4_x16, {l4(0xae), l4(0xb0), l4(0xb2), l4(0xb4)})});
}

/// 4 network cards [ec2]; all about where things are is assumed.
Machine g6e() {
  const auto group = [](unsigned first) {
    return switched(first, gen4_x16,
                    {efa(address(first + 8), "efa1", gen4_x16),
                     nvidia(address(first + 9), "26b9", gen4_x16, "AD102GL [L40S]"),
                     nvidia(address(first + 10), "26b9", gen4_x16, "AD102GL [L40S]")});
  };
  return two_sockets("g6e", "g6e.48xlarge: 8 L40S, 4 EFA of 100 Gb/s, one for 2 GPUs", 1536 * gib,
                     {first_root(true), group(0x40), group(0x50)}, {group(0x80), group(0x90)});
}

/// Which socket a root complex is at is assumed.
Machine trn1() {
  const auto root = [](unsigned bus) {
    Functions below = {ena(address(bus)), efa(address(bus, 0x19), "efa1", 0),
                       efa(address(bus, 0x1a), "efa1", 0)};
    for (unsigned slot = 0x1b; slot <= 0x1e; ++slot)
      below.push_back(neuron(address(bus, slot), "7164", "NeuronDevice (Trainium)"));
    return root_complex(std::move(below));
  };
  Machine machine = two_sockets("trn1", "trn1.32xlarge: 16 Trainium, 8 EFA of 100 Gb/s, one for 2",
                                512 * gib, {root(0x10), root(0x20)}, {root(0x90), root(0xa0)});
  machine.roots = {first_root(false)};
  return machine;
}

/// Addresses of devices and their sockets are known; that each four have a switch is assumed from
/// that they lie together.
Machine trn2() {
  const auto group = [](unsigned nic) {
    Functions devices;
    for (unsigned i = 0; i < 2; ++i) devices.push_back(efa(address(nic + i), "efa2", gen4_x16));
    for (unsigned i = 2; i < 4; ++i)
      devices.push_back(neuron(address(nic + i), "7364", "NeuronDevice (Trainium2)"));
    return switched(nic - 18, gen5_x16, std::move(devices));
  };
  return two_sockets("trn2", "trn2.48xlarge: 16 Trainium2, 16 EFA of 200 Gb/s, one for each",
                     2048 * gib,
                     {first_root(true), group(0x56), group(0x6c), group(0x82), group(0x98)},
                     {group(0xb3), group(0xc9), group(0xdf), group(0xf5)});
}

Function connectx7(const std::string& pci, int number, const char* suffix = "") {
  return {pci,
          "0207",
          "15b3:1021",
          gen5_x16,
          "MT2910 Family [ConnectX-7]",
          {{Kind::network, fmt::format("ibp{}s{}{}", bus_of(pci), device_of(pci), suffix)},
           {Kind::rdma, fmt::format("mlx5_{}", number), 400}}};
}

/// NICs by [dgx]. GPUs are 3 buses after their NICs on real machines; the bridges, that each pair
/// has a switch, and where storage hangs are assumed.
Machine dgx_h100() {
  const auto pair = [](unsigned nic, int number) {
    const unsigned first = nic - 3;
    return root_complex({bridge(
        address(first, 1), gen5_x16,
        {bridge(address(first + 1), gen5_x16,
                {bridge(address(first + 2, 0), gen5_x16, {connectx7(address(nic), number)},
                        "1000:c030"),
                 bridge(address(first + 2, 1), gen5_x16,
                        {nvidia(address(nic + 3), "2330", gen5_x16, "GH100 [H100 SXM5 80GB]")},
                        "1000:c030")},
                "1000:c030")},
        "8086:352a")});
  };
  /// A card of two ports, the second of which is Ethernet.
  const auto storage = [](unsigned bus, int number) {
    Function ethernet = connectx7(address(bus, 0, 1), number + 1);
    ethernet.type = "0200";
    ethernet.devices[0].name = fmt::format("enp{}s0f1np1", bus);
    ethernet.devices[1].gbps = 200;  // assumed
    return root_complex(
        {bridge(address(bus - 1, 1), gen5_x16,
                {connectx7(address(bus), number, "f0"), std::move(ethernet)}, "8086:352a")});
  };
  return two_sockets(
      "dgx-h100", "DGX H100: 8 H100, 8 ConnectX-7 of 400 Gb/s for them, 2 more of 2 ports",
      2048 * gib, {pair(0x18, 0), storage(0x29, 1), pair(0x40, 3), pair(0x4f, 4), pair(0x5e, 5)},
      {pair(0x9a, 6), storage(0xaa, 7), pair(0xc0, 9), pair(0xce, 10), pair(0xdc, 11)});
}

// --- Not in a data centre, all assumed -----------------------------------------------------------

Machine desktop() {
  const auto rtx = [](unsigned bus) {
    Function gpu = nvidia(address(bus), "2684", gen3_x16, "AD102 [GeForce RTX 4090]");
    gpu.type = "0300";
    return gpu;
  };
  Function ethernet = {"0000:05:00.0",
                       "0200",
                       "8086:1563",
                       gen3_x4,
                       "Ethernet Controller 10G X550T",
                       {{Kind::network, "enp5s0", 10}}};
  return two_sockets(
      "desktop", "A workstation of 2 sockets with a GPU each, and 1 Ethernet of 10 Gb/s", 128 * gib,
      {root_complex({bridge("0000:00:01.0", gen3_x16, {rtx(0x03)}, "8086:2f02"),
                     bridge("0000:00:02.0", gen3_x4, {ethernet}, "8086:2f04")})},
      {root_complex({bridge("0000:80:01.0", gen3_x16, {rtx(0x83)}, "8086:2f02")})});
}

Machine laptop() {
  Function wifi = {"0000:00:14.3",
                   "0280",
                   "8086:51f0",
                   0,
                   "Alder Lake-P PCH CNVi WiFi",
                   {{Kind::network, "wlp0s20f3"}}};
  Function integrated = {"0000:00:02.0", "0300", "8086:46a6", 0,
                         "Alder Lake-P GT2 [Iris Xe Graphics]"};
  Function discrete = {"0000:01:00.0", "0302", "10de:25a2", gen3_x4,
                       "GA107M [GeForce RTX 3050 Mobile]"};
  return {
      "laptop",
      "A laptop with a small GPU, and no network but Wi-Fi",
      {{{{0, 16 * gib}}}},
      {root_complex({integrated, bridge("0000:00:06.0", gen3_x4, {discrete}, "8086:464d"), wifi})}};
}

Machine virtual_machine() {
  return {"vm", "A virtual machine (or WSL) without any PCI device", {{{{0, 8 * gib}}}}};
}

}  // namespace

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {
      p3dn(),     p4d(), p5(),   p5e(),  p5en(), p6_b200(),  p6_b300(), g5(),     g6(),
      g6e(),      c5n(), c7gn(), trn1(), trn2(), dgx_h100(), desktop(), laptop(), virtual_machine(),
      container()};
  return all;
}

const Machine* find_machine(std::string_view name) {
  const auto found = std::find_if(machines().begin(), machines().end(),
                                  [&](const Machine& each) { return each.name == name; });
  return found == machines().end() ? nullptr : &*found;
}

}  // namespace weft::facts
