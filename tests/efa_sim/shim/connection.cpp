#include "connection.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace weft::efa_sim {
namespace {

std::int32_t chosen_host() {
  const char* const text = std::getenv(host_variable);
  return text == nullptr || *text == 0 ? -1 : std::atoi(text);
}

/// The device copies from and to this process's memory, for which Yama wants leave.
void give_leave(int socket) {
  ucred device{};
  socklen_t size = sizeof device;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &device, &size) == 0)
    prctl(PR_SET_PTRACER, device.pid, 0, 0, 0);
}

}  // namespace

Request request(Verb verb, std::uint32_t object, std::uint32_t number) {
  Request request{};
  request.version = wire_version;
  request.verb = verb;
  request.object = object;
  request.number = number;
  return request;
}

Connection& Connection::get() {
  // Never destroyed: libfabric closes devices as late as in its own destructor.
  static Connection* const connection = new Connection;
  return *connection;
}

Received<Reply> Connection::ask(Request request, const std::vector<int>& files) {
  const std::lock_guard lock(mutex_);
  if (connect() && send_message(socket_.get(), request, files)) {
    if (auto reply = receive_message<Reply>(socket_.get())) return std::move(*reply);
  }
  Received<Reply> none{};
  none.message.error = EIO;
  return none;
}

const char* Connection::folder() {
  const std::lock_guard lock(mutex_);
  return connect() ? welcome_.message.welcome.folder : "";
}

void Connection::wake() {
  if (page_.data() == nullptr) return;
  if (reinterpret_cast<DevicePage*>(page_.data())->asleep.load() == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

bool Connection::connect() {
  if (process_ == getpid()) return bool(socket_);
  process_ = getpid();
  const char* const path = std::getenv(socket_variable);
  if (path == nullptr || *path == 0) return false;
  socket_ = connect_to(path);
  if (!socket_) {
    std::fprintf(stderr, "efa_sim: no device at %s\n", path);
    return false;
  }
  give_leave(socket_.get());
  static const volatile std::uint64_t cookie = hello_cookie;
  Request hello = request(Verb::hello);
  hello.hello = {chosen_host(), reinterpret_cast<std::uint64_t>(&cookie)};
  auto reply =
      send_message(socket_.get(), hello) ? receive_message<Reply>(socket_.get()) : std::nullopt;
  if (!reply || reply->message.error != 0 || reply->descriptors.size() != 2) {
    std::fprintf(stderr, "efa_sim: %s\n", reply ? reply->message.text : "the device is gone");
    socket_ = {};
    return false;
  }
  try {
    page_ = SharedMemory::map(std::move(reply->descriptors[0]), queue_page);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "efa_sim: %s\n", error.what());
    return false;
  }
  wake_ = std::move(reply->descriptors[1]);
  welcome_.message = reply->message;
  return true;
}

}  // namespace weft::efa_sim
