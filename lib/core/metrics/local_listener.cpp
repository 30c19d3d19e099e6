#include "metrics/local_listener.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.hpp"
#include "control/listen_at.hpp"

namespace weft::core {
namespace {

using UnixEndpoint = asio::local::stream_protocol::endpoint;

constexpr std::string_view unix_prefix = "unix:";
constexpr std::chrono::seconds resolving_time{5};

/// Whether it is the file of a Unix socket without a listener: its process is gone.
bool is_left_behind(const std::string& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const UnixEndpoint there(file);
  return ::connect(socket.get(), there.data(), static_cast<socklen_t>(there.size())) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

Result<std::unique_ptr<LocalListener>> LocalListener::open(asio::io_context& context,
                                                           std::string_view address,
                                                           bool anywhere) {
  std::unique_ptr<LocalListener> listener(new LocalListener(context));
  auto opened = address.starts_with(unix_prefix)
                    ? listener->open_unix(std::string(address.substr(unix_prefix.size())))
                    : listener->open_tcp(address, anywhere);
  if (!opened) return fail(std::move(opened.error()));
  return listener;
}

LocalListener::~LocalListener() {
  if (!file_.empty()) ::unlink(file_.c_str());
}

/// For this user alone, from before a client can connect.
std::error_code LocalListener::listen_on(const std::string& file) {
  Acceptor& acceptor = acceptors_.emplace_back(context_);
  const UnixEndpoint endpoint(file);
  std::error_code error = open_socket(acceptor, Protocol::endpoint(endpoint).protocol());
  if (!error) acceptor.bind(endpoint, error);
  if (!error && ::chmod(file.c_str(), S_IRUSR | S_IWUSR) != 0)
    error = {errno, std::system_category()};
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) acceptors_.pop_back();
  return error;
}

Result<void> LocalListener::open_tcp(std::string_view address, bool anywhere) {
  auto where = parse_address(address);
  if (!where) return fail(std::move(where.error()));
  auto endpoints = resolve(*where, Deadline::in(resolving_time));
  if (!endpoints) return fail(std::move(endpoints.error()));
  for (const auto& each : *endpoints)
    if (!each.address().is_loopback() && !anywhere)
      return fail(Code::permission_denied,
                  fmt::format("metrics on {} could be read by anybody on the network: set "
                              "allow_unauthenticated_network to want that",
                              address));
  auto acceptors = listen_at<Acceptor>(context_, *endpoints);
  if (!acceptors) return fail(std::move(acceptors.error()));
  acceptors_ = std::move(*acceptors);
  Endpoints bound;
  for (const Acceptor& each : acceptors_) bound.push_back(endpoint_of(each));
  address_ = to_string(one_to_tell(bound));
  return {};
}

Result<void> LocalListener::open_unix(const std::string& file) {
  if (file.empty() || file.size() >= sizeof(sockaddr_un::sun_path))
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no path for a Unix socket: it must have from 1 to {} bytes",
                            file, sizeof(sockaddr_un::sun_path) - 1));
  auto error = listen_on(file);
  if (error == asio::error::address_in_use && is_left_behind(file)) {
    ::unlink(file.c_str());
    error = listen_on(file);
  }
  if (error == asio::error::address_in_use)
    return fail(Code::unavailable,
                fmt::format("can't listen on {}: there is such a file, and it is in use", file));
  if (error) return fail(bind_error(file, error));
  file_ = file;
  address_ = std::string(unix_prefix) + file;
  return {};
}

}  // namespace weft::core
