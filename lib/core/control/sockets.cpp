#include "control/sockets.hpp"

#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/sync.hpp"
#include "base/thread.hpp"

namespace weft::core {
namespace {

using AnyStream = asio::generic::stream_protocol;

Result<Endpoints> look_up(const HostPort& where) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  std::error_code error;
  const auto results = resolver.resolve(where.host, std::to_string(where.port.value_or(0)), error);
  Endpoints found;
  for (const auto& result : results)
    if (std::find(found.begin(), found.end(), result.endpoint()) == found.end())
      found.push_back(result.endpoint());
  if (error || found.empty())
    return fail(Code::not_found, fmt::format("the host name '{}' can't be resolved: {}", where.host,
                                             error ? error.message() : "no address"));
  return found;
}

}  // namespace

void resolve(const HostPort& where, std::function<void(Result<Endpoints>)> done) {
  std::error_code not_a_number;
  const asio::ip::address number = asio::ip::make_address(where.host, not_a_number);
  if (!not_a_number) return done(Endpoints{{number, where.port.value_or(0)}});
  const auto started = start_detached([where, done] { done(look_up(where)); });
  if (!started)
    done(fail(Code::unavailable, fmt::format("the host name '{}' can't be resolved: {}", where.host,
                                             started.error().message())));
}

Result<Endpoints> resolve(const HostPort& where, Deadline deadline) {
  struct Answer {
    Mutex mutex;
    Condition changed;
    std::optional<Result<Endpoints>> result WEFT_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  resolve(where, [answer](Result<Endpoints> result) {
    const Lock lock(answer->mutex);
    answer->result = std::move(result);
    answer->changed.notify_all();
  });
  Answer& awaited = *answer;
  const Lock lock(awaited.mutex);
  const auto came = [&]() WEFT_REQUIRES(awaited.mutex) { return awaited.result.has_value(); };
  if (!awaited.changed.wait(awaited.mutex, deadline, came))
    return fail(Code::timed_out,
                fmt::format("the host name '{}' was not resolved in time", where.host));
  return std::move(*awaited.result);
}

template <typename Socket>
std::error_code open_socket(Socket& socket, const typename Socket::protocol_type& protocol) {
  const int descriptor = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return {errno, std::system_category()};
  std::error_code error;
  socket.assign(protocol, descriptor, error);
  if (error) ::close(descriptor);
  return error;
}

template std::error_code open_socket(asio::ip::tcp::socket&, const asio::ip::tcp&);
template std::error_code open_socket(asio::ip::tcp::acceptor&, const asio::ip::tcp&);
template std::error_code open_socket(asio::basic_socket_acceptor<AnyStream>&, const AnyStream&);

namespace {

bool is_of_this_machine(const asio::ip::tcp::endpoint& endpoint) {
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  std::error_code error = open_socket(socket, endpoint.protocol());
  if (!error) socket.bind({endpoint.address(), 0}, error);
  return !error;
}

}  // namespace

const asio::ip::tcp::endpoint& one_to_tell(const Endpoints& endpoints) {
  const auto first = [&](auto wanted) {
    return std::find_if(endpoints.begin(), endpoints.end(), wanted);
  };
  auto found = first(
      [](const auto& each) { return !each.address().is_loopback() && is_of_this_machine(each); });
  if (found == endpoints.end()) found = first(is_of_this_machine);
  return found == endpoints.end() ? endpoints.front() : *found;
}

template <typename Acceptor, typename Socket>
std::error_code accept_from(Acceptor& acceptor, Socket& socket) {
  const int descriptor = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return {errno, std::system_category()};
  std::error_code error;
  socket.assign(acceptor.local_endpoint(error).protocol(), descriptor, error);
  if (error) ::close(descriptor);
  return error;
}

template std::error_code accept_from(asio::ip::tcp::acceptor&, asio::ip::tcp::socket&);
template std::error_code accept_from(asio::basic_socket_acceptor<AnyStream>&, AnyStream::socket&);

std::error_code hand_over(Descriptor descriptor, asio::posix::stream_descriptor& to) {
  std::error_code error;
  to.assign(descriptor.get(), error);
  if (!error) descriptor.release();
  return error;
}

bool is_shortage(const std::error_code& error) {
  return error == std::errc::too_many_files_open ||
         error == std::errc::too_many_files_open_in_system ||
         error == std::errc::not_enough_memory || error == std::errc::no_buffer_space;
}

Error bind_error(const std::string& where, const std::error_code& error) {
  if (error == asio::error::address_in_use)
    return Error(Code::unavailable,
                 fmt::format("can't listen on {}: the port is in use already", where));
  if (error.value() == EADDRNOTAVAIL)
    return Error(
        Code::invalid_argument,
        fmt::format("can't listen on {}: no interface of this machine has that address", where));
  const bool denied = error == asio::error::access_denied;
  return Error(denied ? Code::permission_denied : Code::unavailable,
               fmt::format("can't listen on {}: {}", where, error.message()));
}

void set_options(asio::ip::tcp::socket& socket, Nanoseconds death_after) {
  std::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(death_after).count();
  const auto milliseconds = static_cast<unsigned>(std::clamp<std::int64_t>(timeout, 1, 1 << 30));
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
             sizeof milliseconds);
}

std::string to_string(const asio::ip::tcp::endpoint& endpoint) {
  return format_address(endpoint.address().to_string(), endpoint.port());
}

}  // namespace weft::core
