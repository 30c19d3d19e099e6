// Files of one test, and file systems for them.
#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <weft/place.hpp>

#include "folder.hpp"

namespace weft::test {

inline Blob contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Blob all(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
  return all;
}

inline void put(const std::string& path, const Blob& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// A file system in a folder, for as long as this is: why_not() is empty if it could be mounted.
class Mounted {
 public:
  /// `size` as mount takes it, e.g. "1m".
  static Mounted tmpfs(const Folder& folder, const std::string& size) {
    Mounted made(folder.at("tmpfs"));
    if (mount("none", made.path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0)
      made.why_not_ = std::string("no tmpfs can be mounted: ") + std::strerror(errno);
    return made;
  }
  /// Of 32 MiB, in a file.
  static Mounted ext4(const Folder& folder) {
    Mounted made(folder.at("ext4"));
    const std::string image = folder.write("image", "");
    std::filesystem::resize_file(image, 32 << 20);
    const std::string make = "mkfs.ext4 -q -F " + image + " >/dev/null 2>&1 && mount -o loop " +
                             image + " " + made.path_ + " >/dev/null 2>&1";
    if (std::system(make.c_str()) != 0)
      made.why_not_ = "no ext4 can be mounted: it takes root, mkfs.ext4 and a loop device";
    return made;
  }
  ~Mounted() {
    if (why_not_.empty()) umount2(path_.c_str(), MNT_DETACH);
  }
  Mounted(Mounted&& other)
      : path_(other.path_), why_not_(std::exchange(other.why_not_, "it was moved")) {}
  Mounted& operator=(Mounted&&) = delete;

  const std::string& why_not() const { return why_not_; }
  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  /// False while a file in it is open.
  bool unmount() {
    if (umount2(path_.c_str(), 0) != 0) return false;
    why_not_ = "it was unmounted";
    return true;
  }

 private:
  explicit Mounted(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
  }
  std::string path_;
  std::string why_not_;
};

}  // namespace weft::test
