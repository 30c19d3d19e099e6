#include "common/input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/child.hpp"

namespace weft::tool {
namespace {

// Far more than any description or result; a guess, so that a device ends.
constexpr std::size_t most_bytes = std::size_t{256} << 20;

}  // namespace

Result<std::string> read_input(const std::string& path) {
  const auto unreadable = [&](const char* why) {
    return fail(Code::not_found, fmt::format("'{}' can't be read: {}", path, why));
  };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.open()) return unreadable(std::strerror(errno));
  std::string text, piece(1 << 16, '\0');
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(std::strerror(errno));
    if (got == 0) return text;
    text.append(piece, 0, static_cast<std::size_t>(got));
    if (text.size() > most_bytes) return unreadable("it is too long");
  }
}

}  // namespace weft::tool
