#include "control/host_door.hpp"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/system_error.hpp"
#include "control/sockets.hpp"

namespace weft::core {
namespace {

constexpr int backlog = 64;
/// How long nobody is let in when the process has run out of descriptors.
constexpr std::chrono::milliseconds shortage_pause{100};

/// Sockets of this boot: in a folder on a file server others may be of another host.
std::string name_prefix() {
  return fmt::format("weft-{}-", boot_id().substr(0, 8));
}

/// Nobody listens any more. Of what is no socket connect() says the same.
bool is_abandoned(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  auto socket = open_host_socket();
  auto address = SocketAddress::file(path);
  if (!socket || !address) return false;
  return ::connect(socket->get(), address->get(), address->length()) != 0 && errno == ECONNREFUSED;
}

/// Of this user's: others can't be removed.
void remove_abandoned(const std::string& folder) {
  DIR* const entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  const std::string prefix = name_prefix();
  while (const dirent* const entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(".sock")) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    if (is_abandoned(path)) ::unlink(path.c_str());
  }
  ::closedir(entries);
}

}  // namespace

HostDoor::HostDoor(asio::io_context& context, const Limits& limits, Answer answer)
    : context_(context), limits_(limits), answer_(std::move(answer)) {
  name_ = fmt::format("{}{:016x}", name_prefix(), random_u64());
}

HostDoor::~HostDoor() {
  if (!file_.empty()) ::unlink(file_.c_str());
}

Result<std::unique_ptr<HostDoor>> HostDoor::open(asio::io_context& context,
                                                 const std::string& folder, const Limits& limits,
                                                 Answer answer) {
  std::unique_ptr<HostDoor> door(new HostDoor(context, limits, std::move(answer)));
  const auto abstract = door->listen(SocketAddress::abstract(door->name_));
  if (folder.empty()) return abstract ? std::move(door) : nullptr;
  remove_abandoned(folder);
  if (auto listens = door->listen_in(folder); !listens)
    return fail(Code::invalid_argument,
                fmt::format("host_dir '{}': {}", folder, listens.error().message()));
  return door;
}

Result<void> HostDoor::listen(const SocketAddress& address) {
  auto socket = open_host_socket();
  if (!socket) return fail(std::move(socket.error()));
  if (::bind(socket->get(), address.get(), address.length()) != 0)
    return fail(system_error("bind"));
  if (::listen(socket->get(), backlog) != 0) return fail(system_error("listen"));
  auto listening = std::make_unique<Listening>(context_);
  if (const auto error = hand_over(std::move(*socket), listening->socket))
    return fail(system_error(std::system_error(error)));
  listening_.push_back(std::move(listening));
  return {};
}

/// A file takes its name once it listens: before that it looks like an abandoned one.
Result<void> HostDoor::listen_in(const std::string& folder) {
  const std::string path = socket_file(folder, name_), before = fmt::format("{}/{}", folder, name_);
  auto checked = SocketAddress::file(path);
  if (!checked) return fail(std::move(checked.error()));
  auto address = SocketAddress::file(before);
  if (!address) return fail(std::move(address.error()));
  return listen(*address).and_then([&]() -> Result<void> {
    file_ = before;
    if (::rename(before.c_str(), path.c_str()) != 0) return fail(system_error("rename"));
    file_ = path;
    return {};
  });
}

void HostDoor::start() {
  for (const auto& each : listening_) wait(*each);
}

void HostDoor::close() {
  for (const auto& each : listening_) {
    std::error_code ignored;
    each->socket.close(ignored);
    each->pause.cancel();
  }
  visitors_.clear();
  if (!file_.empty()) ::unlink(std::exchange(file_, {}).c_str());
}

void HostDoor::wait(Listening& at) {
  at.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this, &at](const std::error_code& error) {
                         if (error || !at.socket.is_open()) return;
                         if (accept_one(at)) return wait(at);
                         at.pause.expires_after(shortage_pause);
                         at.pause.async_wait([this, &at](const std::error_code& cancelled) {
                           if (!cancelled && at.socket.is_open()) wait(at);
                         });
                       });
}

/// False if the process or the system has run out of something.
bool HostDoor::accept_one(Listening& at) {
  Descriptor socket(
      ::accept4(at.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.get() < 0) return !is_shortage(std::error_code(errno, std::generic_category()));
  if (!check_user(socket.get())) return true;
  while (visitors_.size() >= limits_.visitors) visitors_.erase(visitors_.begin());
  const std::uint64_t number = next_visitor_++;
  const auto entry = visitors_.emplace(number, std::make_unique<Visitor>(context_)).first;
  Visitor& visitor = *entry->second;
  if (const auto error = hand_over(std::move(socket), visitor.socket)) {
    visitors_.erase(entry);
    return !is_shortage(error);
  }
  visitor.limit.expires_after(limits_.time);
  visitor.limit.async_wait([this, number](const std::error_code& cancelled) {
    if (!cancelled) visitors_.erase(number);
  });
  visitor.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                            [this, number](const std::error_code& error) {
                              if (!error) serve(number);
                              visitors_.erase(number);
                            });
  return true;
}

void HostDoor::serve(std::uint64_t number) {
  const auto visitor = visitors_.find(number);
  if (visitor == visitors_.end()) return;
  const int socket = visitor->second->socket.native_handle();
  HostQuestion question;
  // Descriptors that come with it are dropped by the kernel.
  const ssize_t got = ::recv(socket, &question, sizeof question, MSG_TRUNC);
  if (got != static_cast<ssize_t>(sizeof question) || question.magic != HostQuestion{}.magic ||
      question.version != host_socket_version)
    return;
  Result<Answered> answered = answer_(question);
  const Code code = answered ? Code::internal : answered.error().code();
  HostAnswer answer{.error = answered                          ? 0
                             : code == Code::permission_denied ? EACCES
                             : code == Code::unavailable       ? EAGAIN
                                                               : ENOENT};
  if (!answered) return send_answer(socket, answer, Descriptor());
  answer.nonce = answered->nonce;
  send_answer(socket, answer, answered->descriptor);
}

}  // namespace weft::core
