#include "metrics/endpoint.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <utility>

#include "base/thread.hpp"
#include "control/sockets.hpp"

namespace weft::core {
namespace {

/// How long no connection is accepted when the process has run out of descriptors.
constexpr std::chrono::milliseconds shortage_pause{100};
/// Bytes that may follow a request before the connection is closed for it.
constexpr std::size_t most_ignored = std::size_t{1} << 20;

}  // namespace

/// One connection: reads the head of a request, answers it, and closes when the other side does.
class MetricsSession : public std::enable_shared_from_this<MetricsSession> {
 public:
  MetricsSession(MetricsEndpoint& endpoint, std::uint64_t id,
                 LocalListener::Protocol::socket socket)
      : endpoint_(endpoint), id_(id), socket_(std::move(socket)), timer_(endpoint.io_) {}

  void start() {
    timer_.expires_after(endpoint_.limits_.time);
    timer_.async_wait([self = shared_from_this()](const std::error_code& cancelled) {
      if (!cancelled) self->close();
    });
    read();
  }
  void close() {
    std::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    endpoint_.sessions_.erase(id_);
  }

 private:
  template <typename Received>
  void receive(Received&& received) {
    socket_.async_read_some(
        asio::buffer(buffer_),
        [self = shared_from_this(), received](const std::error_code& error, std::size_t count) {
          if (error) return self->close();
          received(*self, count);
        });
  }

  void read() {
    receive([](MetricsSession& self, std::size_t count) {
      self.request_.append(self.buffer_.data(), count);
      const std::size_t end = head_end(self.request_);
      if (std::min(end, self.request_.size()) > longest_request)
        return self.answer(http_too_long());
      if (end == std::string::npos) return self.read();
      self.answer(
          http_response(std::string_view(self.request_).substr(0, end), self.endpoint_.pages_));
    });
  }

  void answer(std::string response) {
    response_ = std::move(response);
    asio::async_write(socket_, asio::buffer(response_),
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                        if (error) return self->close();
                        std::error_code ignored;
                        self->socket_.shutdown(asio::socket_base::shutdown_send, ignored);
                        self->ignore_the_rest();
                      });
  }

  /// To close with something unread would reset the connection, and could take the answer away
  /// before it is read.
  void ignore_the_rest() {
    receive([](MetricsSession& self, std::size_t count) {
      self.ignored_ += count;
      if (self.ignored_ > most_ignored) return self.close();
      self.ignore_the_rest();
    });
  }

  MetricsEndpoint& endpoint_;
  const std::uint64_t id_;
  LocalListener::Protocol::socket socket_;
  asio::steady_timer timer_;
  std::array<char, 2048> buffer_;
  std::string request_, response_;
  std::size_t ignored_ = 0;
};

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::open(std::string_view address,
                                                               bool anywhere,
                                                               std::vector<HttpPage> pages,
                                                               const Limits& limits) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint(std::move(pages), limits));
  auto listener = LocalListener::open(endpoint->io_, address, anywhere);
  if (!listener) return fail(std::move(listener.error()));
  endpoint->listener_ = std::move(*listener);
  if (auto started = endpoint->start(); !started) return fail(std::move(started.error()));
  return endpoint;
}

Result<void> MetricsEndpoint::start() {
  for (auto& each : listener_->acceptors()) wait(each);
  const SignalsBlocked blocked;
  return start_thread([this] {
           pthread_setname_np(pthread_self(), "weft-metrics");
           io_.run();
         })
      .map([this](std::thread started) { thread_ = std::move(started); });
}

MetricsEndpoint::~MetricsEndpoint() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

void MetricsEndpoint::wait(LocalListener::Acceptor& acceptor) {
  acceptor.async_wait(LocalListener::Acceptor::wait_read,
                      [this, &acceptor](const std::error_code& error) {
                        if (error) return;
                        is_shortage(accept(acceptor)) ? pause(acceptor) : wait(acceptor);
                      });
}

void MetricsEndpoint::pause(LocalListener::Acceptor& acceptor) {
  const auto timer = std::make_shared<asio::steady_timer>(io_, shortage_pause);
  timer->async_wait([this, &acceptor, timer](const std::error_code& cancelled) {
    if (!cancelled) wait(acceptor);
  });
}

std::error_code MetricsEndpoint::accept(LocalListener::Acceptor& acceptor) {
  LocalListener::Protocol::socket socket(io_);
  if (const auto error = accept_from(acceptor, socket)) return error;
  while (sessions_.size() >= limits_.connections) {
    const auto oldest = sessions_.begin()->second;
    oldest->close();
  }
  const std::uint64_t id = next_session_++;
  const auto session = std::make_shared<MetricsSession>(*this, id, std::move(socket));
  sessions_.emplace(id, session);
  session->start();
  return {};
}

}  // namespace weft::core
