#include "folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace weft::efa_sim {
namespace {

namespace fs = std::filesystem;

void make_sysfs(const fs::path& root, const std::vector<NicDescription>& nics) {
  const fs::path driver = root / "bus/pci/drivers/efa";
  fs::create_directories(driver);
  fs::create_directories(root / "bus/pci/devices");
  fs::create_directories(root / "class/infiniband_verbs");
  std::ofstream(root / "class/infiniband_verbs/abi_version") << "6\n";
  for (const NicDescription& nic : nics) {
    const fs::path device = root / "devices" / nic.pci;
    const fs::path entry = root / "class/infiniband" / nic.name;
    fs::create_directories(device);
    fs::create_directories(entry);
    fs::create_directory_symlink(driver, device / "driver");
    fs::create_directory_symlink(device, entry / "device");
    fs::create_directory_symlink(device, root / "bus/pci/devices" / nic.pci);
    std::ofstream(device / "numa_node") << nic.numa_node << '\n';
  }
}

}  // namespace

Folder::Folder(const std::vector<NicDescription>& nics) {
  std::string name = (fs::temp_directory_path() / "weft-efa-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
  make_sysfs(path_ / "sysfs", nics);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace weft::efa_sim
