#include "protocol/started_side.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace weft::perf {
namespace {

Result<std::string> read_address(int fd, Deadline deadline) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd waited{fd, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    if (::poll(&waited, 1, static_cast<int>(left.count())) == 0)
      return fail(Code::timed_out, "it did not begin to listen in time (--timeout)");
    char buffer[256];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return fail(Code::unavailable, "it ended before it listened");
    line.append(buffer, static_cast<std::size_t>(got));
  }
  line.pop_back();
  return line;
}

}  // namespace

Result<StartedSide> start_side(const std::string& name, const std::string& host, const Site& site,
                               const std::stop_token& stop) {
  auto ready = tool::Pipe::make();
  if (!ready) return fail(std::move(ready.error()));
  std::vector<std::string> words{
      "--listen",
      host + ":0",
      "--once",
      "--ready-fd",
      std::to_string(ready->write.get()),
      "--timeout",
      fmt::format("{}", std::chrono::duration<double>(site.timeout).count())};
  for (const std::string& file : site.files) words.insert(words.end(), {"--files", file});
  if (site.allow_unauthenticated_network) words.push_back("--allow-unauthenticated-network");
  for (const std::string& nic : site.nics) words.insert(words.end(), {"--nics", nic});
  if (!site.rail_address.empty()) words.insert(words.end(), {"--rail-address", site.rail_address});
  const auto credentials = tool::arguments(site.credentials);
  words.insert(words.end(), credentials.begin(), credentials.end());
  auto child = tool::Child::start(name, words, ready->write);
  if (!child) return fail(std::move(child.error()));
  ready->write.close();
  const std::stop_callback interrupt(stop, [&] { child->signal(SIGKILL); });
  auto address = read_address(ready->read.get(), Deadline::in(site.timeout));
  if (!address)
    return fail(address.error().code(), fmt::format("{}: {}", name, address.error().message()));
  return StartedSide{std::move(*child), std::move(*address)};
}

void let_end(std::vector<StartedSide>& started, Nanoseconds time) {
  const Deadline deadline = Deadline::in(time);
  for (StartedSide& side : started) {
    pollfd end{side.child.output().get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    if (::poll(&end, 1, static_cast<int>(left.count())) == 1) side.child.reap();
  }
}

}  // namespace weft::perf
