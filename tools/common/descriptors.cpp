#include "common/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/child.hpp"

namespace weft::tool {
namespace {

rlimit limit_now() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

}  // namespace

void take_descriptors() {
  rlimit limit = limit_now();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  // The lowest number that is free is the one that open() gives.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 &&
        open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
      return;
}

DescriptorRoom descriptor_room() {
  const std::uint64_t limit = limit_now().rlim_cur;
  // All below the lowest number that is free are open.
  const Descriptor lowest(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  const auto number = static_cast<std::uint64_t>(lowest.get());
  return {lowest.open() && number < limit ? limit - number : 0, limit};
}

}  // namespace weft::tool
