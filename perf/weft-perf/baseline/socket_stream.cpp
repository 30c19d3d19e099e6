#include "baseline/socket_stream.hpp"

#include <asio.hpp>
#include <future>
#include <thread>
#include <vector>

namespace weft::perf {
namespace {

using asio::ip::tcp;

tl::unexpected<Error> failed(const char* what, const std::error_code& error) {
  return fail(Code::unavailable,
              std::string("the plain TCP stream: ") + what + ": " + error.message());
}

/// Writes again and again, then waits for the other side's end.
class Source {
 public:
  Source(asio::io_context& context, std::size_t bytes, Nanoseconds time)
      : socket_(context), bytes_(bytes, std::byte{1}), time_(time) {}

  void start(const tcp::endpoint& to) {
    socket_.async_connect(to, [this](std::error_code error) {
      begun_ = Clock::now();
      if (!take(error)) write();
    });
  }

  bool done() const noexcept { return done_; }
  std::error_code error() const noexcept { return error_; }
  StreamResult result() const {
    return {written_, std::chrono::duration<double>(ended_ - begun_).count()};
  }

 private:
  bool take(std::error_code error) {
    error_ = error;
    return static_cast<bool>(error);
  }
  void write() {
    asio::async_write(socket_, asio::buffer(bytes_), [this](std::error_code error, std::size_t n) {
      written_ += n;
      if (take(error)) return;
      if (Clock::now() - begun_ < time_) return write();
      socket_.shutdown(tcp::socket::shutdown_send, error);
      if (!take(error)) await_end();
    });
  }
  void await_end() {
    socket_.async_read_some(asio::buffer(bytes_), [this](std::error_code error, std::size_t) {
      ended_ = Clock::now();
      done_ = error == asio::error::eof;
      if (!done_) take(error);
    });
  }

  tcp::socket socket_;
  std::vector<std::byte> bytes_;
  const Nanoseconds time_;
  Clock::time_point begun_{}, ended_{};
  std::uint64_t written_ = 0;
  bool done_ = false;
  std::error_code error_;
};

}  // namespace

struct StreamSink::State {
  State(std::size_t bytes, Nanoseconds patience) : timeout(patience), buffer(bytes) {}
  ~State() {
    context.stop();
    if (thread.joinable()) thread.join();
  }

  void read() {
    socket.async_read_some(asio::buffer(buffer), [this](std::error_code error, std::size_t n) {
      received += n;
      if (!error) return read();
      std::error_code ignored;
      socket.close(ignored);
      over.set_value(error);
    });
  }

  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  tcp::socket socket{context};
  const Nanoseconds timeout;
  std::vector<std::byte> buffer;
  std::uint64_t received = 0;  // The thread's, until `over`.
  std::promise<std::error_code> over;
  std::thread thread;
};

StreamSink::StreamSink(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamSink::StreamSink(StreamSink&&) noexcept = default;
StreamSink& StreamSink::operator=(StreamSink&&) noexcept = default;
StreamSink::~StreamSink() = default;

Result<StreamSink> StreamSink::open(const std::string& address, std::size_t bytes,
                                    Nanoseconds timeout) {
  auto state = std::make_unique<State>(bytes, timeout);
  std::error_code error;
  const tcp::endpoint local(asio::ip::make_address(address, error), 0);
  if (!error) state->acceptor.open(local.protocol(), error);
  if (!error) state->acceptor.bind(local, error);
  if (!error) state->acceptor.listen(1, error);
  if (error) return failed("can't listen", error);
  state->acceptor.async_accept(state->socket, [&of = *state](std::error_code refused) {
    if (refused) return of.over.set_value(refused);
    of.socket.set_option(tcp::no_delay(true), refused);
    of.read();
  });
  state->thread = std::thread([&of = *state] { of.context.run(); });
  return StreamSink(std::move(state));
}

std::uint16_t StreamSink::port() const noexcept {
  std::error_code error;
  return state_->acceptor.local_endpoint(error).port();
}

Result<std::uint64_t> StreamSink::finish() {
  auto over = state_->over.get_future();
  if (over.wait_for(state_->timeout) != std::future_status::ready)
    return fail(Code::timed_out, "the plain TCP stream did not end in time");
  if (const std::error_code error = over.get(); error != asio::error::eof)
    return failed("it broke", error);
  return state_->received;
}

Result<StreamResult> stream_to(const std::string& address, std::uint16_t port, std::size_t bytes,
                               Nanoseconds time, Nanoseconds timeout, const std::stop_token& stop) {
  std::error_code error;
  const auto host = asio::ip::make_address(address, error);
  if (error) return failed("no address", error);
  asio::io_context context{1};
  Source source(context, bytes, time);
  source.start({host, port});
  const std::stop_callback interrupt(stop, [&] { context.stop(); });
  context.run_for(time + timeout);
  if (stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  if (source.error()) return failed("it broke", source.error());
  if (!source.done()) return fail(Code::timed_out, "the plain TCP stream did not end in time");
  return source.result();
}

}  // namespace weft::perf
