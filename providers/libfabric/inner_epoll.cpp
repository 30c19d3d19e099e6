#include "providers/libfabric/inner_epoll.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft::providers {
namespace {

bool is_epoll(int fd) {
  std::error_code error;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  return !error && file == "anon_inode:[eventpoll]";
}

}  // namespace

std::optional<int> inner_epoll(int epoll) {
  std::optional<int> found;
  std::ifstream facts(fmt::format("/proc/self/fdinfo/{}", epoll));
  // "tfd: 8 events: 19 data: ..." for each descriptor, among other lines.
  for (std::string word; facts >> word;) {
    int fd = -1;
    if (word != "tfd:" || !(facts >> fd) || !is_epoll(fd)) continue;
    if (found) return std::nullopt;
    found = fd;
  }
  return found;
}

}  // namespace weft::providers
