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

// NVIDIA numbers its devices by generations, and those of display class before Kepler (GK107, 2012)
// can't be reached by NICs: GPUDirect RDMA came with it. By the PCI ID repository.
constexpr std::uint16_t first_kepler = 0x0fc0;

struct Range {
  std::uint16_t first, last;
};

// Of AMD's devices of display class, those with memory of their own that Linux's compute driver
// (amdkfd) knows, by the PCI ID repository. Others drive displays: old ones (ES1000, Rage, Radeon
// up to Northern Islands) and those in CPUs.
constexpr Range amd_gpus[] = {
    {0x66a0, 0x66af},  // Vega 20
    {0x67a0, 0x67ff},  // Hawaii, Polaris 10 and 11
    {0x6860, 0x687f},  // Vega 10
    {0x6920, 0x693f},  // Tonga
    {0x6980, 0x69af},  // Polaris 12, Vega 12
    {0x7300, 0x78ff},  // Fiji, Navi, and Instinct from MI100 on
};

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

// EFA's driver knows the speed from r2.13 on, and says this where it does not (efa_verbs.c).
constexpr double efa_driver_default = 100;

const Known* known_accelerator(const PciIds& ids) {
  const auto* found = std::find_if(
      std::begin(accelerators), std::end(accelerators),
      [&](const Known& each) { return each.vendor == ids.vendor && each.device == ids.device; });
  return found == std::end(accelerators) ? nullptr : found;
}

bool is_amd_gpu(std::uint16_t device) {
  return std::any_of(std::begin(amd_gpus), std::end(amd_gpus), [&](const Range& each) {
    return each.first <= device && device <= each.last;
  });
}

const char* vendor_name(std::uint16_t vendor) {
  if (vendor == nvidia) return "NVIDIA";
  return vendor == amd ? "AMD" : "PCI";
}

}  // namespace

bool is_gpu(const PciIds& ids) {
  if (known_accelerator(ids) != nullptr) return true;
  const bool computes = ids.type == controller_3d || ids.type == accelerator;
  const bool displays = ids.type == vga || ids.type == other_display;
  if (ids.vendor == nvidia)
    return ids.type == controller_3d || (ids.type == vga && ids.device >= first_kepler);
  return ids.vendor == amd && (computes || (displays && is_amd_gpu(ids.device)));
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

double gbps_by_driver(const PciIds& ids, double told) {
  const double usual = usual_gbps(ids);
  if (told <= 0) return usual;
  return is_efa(ids) && told == efa_driver_default ? std::max(told, usual) : told;
}

}  // namespace weft::topo
