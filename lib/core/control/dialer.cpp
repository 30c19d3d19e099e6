#include "control/dialer.hpp"

#include <fmt/core.h>

#include <utility>

namespace weft::core {
namespace {

using asio::ip::tcp;

Error dial_error(const std::string& address, const tcp::endpoint& endpoint,
                 const std::error_code& error) {
  const std::string number = to_string(endpoint);
  const std::string where = number == address ? address : fmt::format("{} ({})", address, number);
  if (error == asio::error::connection_refused)
    return Error(Code::unavailable,
                 fmt::format("connection refused: nothing listens at {}", where));
  if (error == asio::error::timed_out || error == asio::error::operation_aborted)
    return Error(Code::timed_out, fmt::format("{} does not answer", where));
  if (error == asio::error::host_unreachable || error == asio::error::network_unreachable)
    return Error(Code::unavailable,
                 fmt::format("{} can't be reached from here: {}", where, error.message()));
  return Error(Code::unavailable, fmt::format("can't connect to {}: {}", where, error.message()));
}

/// TCP may connect a socket to itself, where the system picked the dialled port for it.
bool is_own_echo(const tcp::socket& socket) {
  std::error_code error;
  return socket.local_endpoint(error) == socket.remote_endpoint(error);
}

}  // namespace

void Dialer::start(Done done) {
  done_ = std::move(done);
  try_next();
}

void Dialer::cancel() {
  done_ = nullptr;
  std::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
}

void Dialer::try_next() {
  const tcp::endpoint& endpoint = endpoints_[next_];
  if (const std::error_code error = open_socket(socket_, endpoint.protocol())) return failed(error);
  const auto others = static_cast<std::int64_t>(endpoints_.size() - next_);
  timer_.expires_after(deadline_.left() / others);
  timer_.async_wait([this, self = shared_from_this()](const std::error_code& cancelled) {
    std::error_code ignored;
    if (!cancelled && done_ && timer_.expiry() <= Clock::now()) socket_.cancel(ignored);
  });
  socket_.async_connect(endpoint, [this, self = shared_from_this()](const std::error_code& error) {
    timer_.cancel();
    if (done_) tried(error);
  });
}

void Dialer::tried(const std::error_code& error) {
  if (error) return failed(error);
  if (is_own_echo(socket_)) return failed(asio::error::connection_refused);
  std::exchange(done_, nullptr)(std::move(socket_));
}

void Dialer::failed(const std::error_code& error) {
  std::error_code ignored;
  socket_.close(ignored);
  const tcp::endpoint& endpoint = endpoints_[next_];
  if (++next_ < endpoints_.size()) return try_next();
  std::exchange(done_, nullptr)(fail(dial_error(address_, endpoint, error)));
}

}  // namespace weft::core
