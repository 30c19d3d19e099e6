#include "base/host_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/system_error.hpp"

namespace weft::core {
namespace {

class ByNumber final : public HostProcess {
 public:
  ByNumber(Process process, std::int32_t pid) : HostProcess(std::move(process)), pid_(pid) {}
  Result<Descriptor> open(const Sought& sought) const override {
    return open_link(fmt::format("/proc/{}/fd/{}", pid_, sought.descriptor), sought.kind,
                     sought.mode);
  }
  bool waits() const noexcept override { return false; }
  std::int32_t pid() const noexcept override { return pid_; }

 private:
  const std::int32_t pid_;
};

}  // namespace

Result<std::shared_ptr<const HostProcess>> process_by_number(std::int32_t pid) {
  return Process::of(pid).map([&](Process process) -> std::shared_ptr<const HostProcess> {
    return std::make_shared<ByNumber>(std::move(process), pid);
  });
}

Result<Descriptor> open_link(const std::string& path, std::string_view kind, int mode) {
  std::array<char, 64> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return fail(system_error(path));
  if (!std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with(kind))
    return fail(Code::invalid_argument, fmt::format("{} is no {} of Weft's", path, kind));
  Descriptor opened(::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (opened.get() < 0) return fail(system_error(path));
  return opened;
}

}  // namespace weft::core
