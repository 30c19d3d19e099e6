#include "common/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the kernel follows
// For the reader of a named pipe. A guess.
constexpr auto reader_time = std::chrono::seconds(10);

/// One of this process's descriptors that `path` stands for, as /dev/fd/3 does; -1: none.
int own_descriptor(const fs::path& path) {
  std::error_code none;
  if (fs::canonical(path.parent_path(), none) != fs::canonical("/proc/self/fd", none) || none)
    return -1;
  const std::string name = path.filename();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

/// Where links lead, be anything there or not; or the descriptor that they stand for.
fs::path target_of(fs::path path) {
  std::error_code error;
  for (int links = 0; links < most_links && own_descriptor(path) < 0; ++links) {
    const fs::path link = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / link;
  }
  return path;
}

/// The mode of a new file: mkostemp makes files that are the owner's alone.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// 0, or an error number.
int open_in_place(const std::string& path, bool pipe, Descriptor& file) {
  const auto until = std::chrono::steady_clock::now() + reader_time;
  for (;;) {
    file = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file.open()) break;
    const int error = errno;
    if (!pipe || error != ENXIO || std::chrono::steady_clock::now() > until) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fcntl(file.get(), F_SETFL, fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return 0;
}

}  // namespace

Result<void> Output::result_of(int error) const {
  if (error == 0) return {};
  const bool forbidden = error == EACCES || error == EPERM || error == EROFS;
  return fail(forbidden ? Code::permission_denied : Code::unavailable,
              fmt::format("could not write {}: {}",
                          path_ == standard_output ? "to standard output" : "'" + path_ + "'",
                          std::strerror(error)));
}

Result<Output> Output::open(const std::string& path) {
  Output output(path);
  return output.result_of(output.begin()).map([&] { return std::move(output); });
}

Output::Output(Output&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      beside_(std::exchange(other.beside_, {})),
      replaced_(other.replaced_),
      file_(std::move(other.file_)) {}

Output::~Output() {
  if (!beside_.empty()) unlink(beside_.c_str());
}

int Output::begin() {
  const fs::path target = target_of(path_);
  const int own = path_ == standard_output ? STDOUT_FILENO : own_descriptor(target);
  if (own >= 0) {
    std::fflush(stdout);  // What was printed before comes before.
    file_ = Descriptor(fcntl(own, F_DUPFD_CLOEXEC, 0));
    return file_.open() ? 0 : errno;
  }
  // Refused where the kernel does not follow a link, as others' in /tmp (fs.protected_symlinks).
  const Descriptor followed(::open(path_.c_str(), O_PATH | O_CLOEXEC));
  if (!followed.open() && errno != ENOENT) return errno;
  struct stat status {};
  if (stat(target.c_str(), &status) != 0) return errno == ENOENT ? begin_beside(target) : errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return open_in_place(target, S_ISFIFO(status.st_mode), file_);
  replaced_ = status;
  return begin_beside(target);
}

int Output::begin_beside(const std::string& target) {
  std::string name = target + ".XXXXXX";
  file_ = Descriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!file_.open()) return errno;
  target_ = target;
  beside_ = std::move(name);
  return 0;
}

Result<void> Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return result_of(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// As what it replaces, or as any new file.
int Output::dress() const {
  if (replaced_ && fchown(file_.get(), replaced_->st_uid, replaced_->st_gid) != 0 &&
      fchown(file_.get(), static_cast<uid_t>(-1), replaced_->st_gid) != 0)
    return fchmod(file_.get(), replaced_->st_mode & 0707) == 0 ? 0 : errno;
  return fchmod(file_.get(), replaced_ ? replaced_->st_mode & 0777 : usual_mode()) == 0 ? 0 : errno;
}

Result<void> Output::finish() {
  if (beside_.empty()) return {};
  int error = dress();
  // Some file systems say only now that the disk is full.
  if (error == 0 && fsync(file_.get()) != 0) error = errno;
  if (error == 0 && std::rename(beside_.c_str(), target_.c_str()) != 0) error = errno;
  if (error == 0) beside_.clear();
  return result_of(error);
}

Result<void> Output::probe() {
  struct stat status {};
  const bool device = fstat(file_.get(), &status) == 0 && S_ISCHR(status.st_mode);
  return result_of(device && ::write(file_.get(), "", 0) != 0 ? errno : 0);
}

Result<void> write_output(const std::string& path, std::string_view bytes) {
  auto output = Output::open(path);
  if (!output) return fail(std::move(output.error()));
  return output->write(bytes).and_then([&] { return output->finish(); });
}

Result<void> check_output(const std::string& path) {
  struct stat status {};
  // Opened and closed, a pipe would be at its end for who reads it.
  if (stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) return {};
  return Output::open(path).and_then([](Output output) { return output.probe(); });
}

}  // namespace weft::tool
