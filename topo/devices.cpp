#include "topo/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft::topo {
namespace {

// Vendors by the PCI ID repository (pci-ids.ucw.cz).
constexpr std::uint16_t nvidia = 0x10de, amd = 0x1002, amazon = 0x1d0f;

// Classes by the PCI Code and ID Assignment Specification.
constexpr std::uint16_t vga = 0x0300, controller_3d = 0x0302, other_display = 0x0380,
                        accelerator = 0x1200;

struct Known {
  std::uint16_t vendor, device;
  const char* name;
};

// Amazon's accelerators: the Neuron driver's neuron_pci.c. They have a class of their own making.
constexpr Known accelerators[] =
    {
        {amazon, 0x7064, "Inferentia"},  {amazon, 0x7164, "Trainium"},
        {amazon, 0x7264, "Inferentia2"}, {amazon, 0x7364, "Trainium2"},
        {amazon, 0x7564, "Trainium3"},  // and 7565: the PCI ID repository
        {amazon, 0x7565, "Trainium3"},
};

struct Speed {
  std::uint16_t vendor, device;
  double gbps;
};

// By the instances that have them (Amazon's pages of instance types; numbers of devices by captures
// and by ibv_devinfo's hw_ver in public logs; where only assumed: efa1 in p5e, g6e and trn1, efa2
// in trn2, c7gn and hpc7g, efa3 in p6-b300).
constexpr Speed speeds[] = {
    {amazon, 0xefa0, 100},  // c5n.18xlarge, p3dn.24xlarge, g5.48xlarge, p4d.24xlarge (4: 400)
    {amazon, 0xefa1, 100},  // p5.48xlarge (32 of them: 3200 Gb/s), g6.48xlarge
    {amazon, 0xefa2, 200},  // p5en.48xlarge (16: 3200)
    {amazon, 0xefa3, 400},  // p6-b200.48xlarge (8: 3200)
};

const Known* known_accelerator(const PciIds& ids) {
  const auto* found = std::find_if(
      std::begin(accelerators), std::end(accelerators),
      [&](const Known& each) { return each.vendor == ids.vendor && each.device == ids.device; });
  return found == std::end(accelerators) ? nullptr : found;
}

const char* vendor_name(std::uint16_t vendor) {
  if (vendor == nvidia) return "NVIDIA";
  return vendor == amd ? "AMD" : "PCI";
}

}  // namespace

bool is_gpu(const PciIds& ids) {
  if (known_accelerator(ids) != nullptr) return true;
  if (ids.vendor == nvidia) return ids.type == vga || ids.type == controller_3d;
  if (ids.vendor == amd)
    return ids.type == vga || ids.type == controller_3d || ids.type == other_display ||
           ids.type == accelerator;
  return false;
}

std::string name_of_gpu(const PciIds& ids) {
  if (const Known* known = known_accelerator(ids)) return known->name;
  return fmt::format("{} {:04x}:{:04x}", vendor_name(ids.vendor), ids.vendor, ids.device);
}

bool is_efa(const PciIds& ids) {
  return ids.vendor == amazon && (ids.device & 0xfff0) == 0xefa0;
}

double usual_gbps(const PciIds& ids) {
  for (const Speed& each : speeds)
    if (each.vendor == ids.vendor && each.device == ids.device) return each.gbps;
  return 0;
}

}  // namespace weft::topo
