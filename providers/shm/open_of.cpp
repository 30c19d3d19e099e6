#include "providers/shm/open_of.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>

namespace weft::providers::shm {

Result<Descriptor> open_of(std::int32_t pid, std::int32_t descriptor, std::string_view kind,
                           int mode) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, descriptor);
  std::array<char, 64> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return fail(system_error(path));
  if (!std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with(kind))
    return fail(Code::invalid_argument, fmt::format("{} is no {} of Weft's", path, kind));
  Descriptor opened(open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (opened.get() < 0) return fail(system_error(path));
  return opened;
}

}  // namespace weft::providers::shm
