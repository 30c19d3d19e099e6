#include "driver/backing.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

std::string name_with(std::uint64_t tag) {
  std::array<char, 40> name;
  std::snprintf(name.data(), name.size(), "weft-cuda-%016llx",
                static_cast<unsigned long long>(tag));
  return name.data();
}

/// What a link in /proc leads to; empty when it leads nowhere.
std::string link_at(const std::string& path) {
  std::array<char, 128> text;
  const ssize_t size = readlink(path.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

}  // namespace

Backing Backing::create(std::size_t bytes, std::uint64_t tag) {
  const int file = memfd_create(name_with(tag).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(file >= 0, out_of_memory);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    fail(out_of_memory);
  }
  return map(file, bytes);
}

Backing Backing::open(int process, int descriptor, std::size_t bytes, std::uint64_t tag) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  require(file >= 0);
  // The number may stand for another file by now: asked of the file that was really opened.
  if (link_at("/proc/self/fd/" + std::to_string(file)) !=
      "/memfd:" + name_with(tag) + " (deleted)") {
    close(file);
    fail(invalid_value);
  }
  // Held until it is closed or the process ends; the owner asks for it when it frees the memory.
  if (flock(file, LOCK_SH | LOCK_NB) != 0) {
    close(file);
    fail(invalid_value);
  }
  return map(file, bytes);
}

Backing Backing::map(int descriptor, std::size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    close(descriptor);
    fail(out_of_memory);
  }
  Backing backing;
  backing.descriptor_ = descriptor;
  backing.data_ = static_cast<std::byte*>(data);
  backing.bytes_ = bytes;
  return backing;
}

Backing::~Backing() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

// A seal stays with the file for as long as anybody has it open.
bool Backing::retire() {
  fcntl(descriptor_, F_ADD_SEALS, F_SEAL_GROW);
  return flock(descriptor_, LOCK_EX | LOCK_NB) != 0;
}

bool Backing::retired() const {
  return (fcntl(descriptor_, F_GET_SEALS) & F_SEAL_GROW) != 0;
}

}  // namespace weft::cuda_sim
