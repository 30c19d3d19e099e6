#include "control/private_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"

namespace weft::core {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 10;

}  // namespace

Result<std::string> read_private_file(const std::string& option, const std::string& path) {
  const auto refuse = [&](Code code, const std::string& why) {
    return fail(code, fmt::format("{} '{}' {}", option, path, why));
  };
  const auto unreadable = [&](int error) {
    return refuse(error == EACCES ? Code::permission_denied : Code::invalid_argument,
                  "can't be read: " + error_text(error));
  };
  // Without O_NONBLOCK a pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return unreadable(errno);
  if (!S_ISREG(status.st_mode)) return refuse(Code::invalid_argument, "is no regular file");
  if ((status.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return refuse(Code::permission_denied,
                  fmt::format("may be read or written by everybody (mode {:o}): chmod o-rw it",
                              status.st_mode & 07777));
  std::string contents(most_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < contents.size()) {
    const ssize_t got = ::read(file.get(), contents.data() + size, contents.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most_bytes)
    return refuse(Code::invalid_argument, fmt::format("has more than {} bytes", most_bytes));
  contents.resize(size);
  return contents;
}

}  // namespace weft::core
