#include "resources.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "endpoints.hpp"

namespace weft::chaos {
namespace {

std::int64_t count_entries(const char* folder) {
  std::int64_t count = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder, gone), end; entry != end && !gone;
       entry.increment(gone))
    ++count;
  return count;
}

bool is_tcp_connection(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

}  // namespace

Resources Resources::held() {
  return {count_entries("/proc/self/task"), count_entries("/proc/self/fd"), live_registrations()};
}

std::vector<std::string> descriptor_names() {
  std::vector<std::string> names;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", gone), end; entry != end && !gone;
       entry.increment(gone)) {
    std::error_code closed;
    names.push_back(std::filesystem::read_symlink(entry->path(), closed).string());
  }
  return names;
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

bool cut_connection(std::uint64_t pick) {
  std::vector<int> connections;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", gone), end; entry != end && !gone;
       entry.increment(gone)) {
    const int descriptor = std::stoi(entry->path().filename().string());
    if (is_tcp_connection(descriptor)) connections.push_back(descriptor);
  }
  if (connections.empty()) return false;
  return shutdown(connections[pick % connections.size()], SHUT_RDWR) == 0;
}

}  // namespace weft::chaos
