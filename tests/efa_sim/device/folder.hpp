// The device's folder: its socket, and a tree as that of sysfs, in which libfabric looks up the
// driver and the PCI address of each NIC. Gone with the object.
#pragma once

#include <filesystem>
#include <vector>

#include "settings.hpp"

namespace weft::efa_sim {

class Folder {
 public:
  /// Throws std::system_error.
  explicit Folder(const std::vector<NicDescription>& nics);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path socket() const { return path_ / "socket"; }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::efa_sim
