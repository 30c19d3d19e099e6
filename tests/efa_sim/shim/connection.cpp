#include "connection.hpp"

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

}  // namespace

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

void Connection::rang() {
  if (page_.data() != nullptr) ++device().doorbells;
  wake();
}

void Connection::wake() {
  if (page_.data() == nullptr) return;
  if (device().asleep.load() == 0) return;
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
  auto reply = greet(socket_.get(), chosen_host());
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
