#include "control/framed_socket.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "control/address.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {
namespace {

std::string remote_of(const asio::ip::tcp::socket& socket) {
  std::error_code error;
  const asio::ip::tcp::endpoint end = socket.remote_endpoint(error);
  return error ? "a connection that is gone"
               : format_address(end.address().to_string(), end.port());
}

/// How a connection ends whose TLS has failed.
LinkEnd tls_end(Code code, bool established) {
  if (code == Code::permission_denied) return LinkEnd::credentials;
  if (code == Code::peer_down) return LinkEnd::connection_lost;
  return established ? LinkEnd::violation : LinkEnd::not_weft;
}

std::size_t frame_size(Bytes header) {
  std::size_t size = 0;
  for (std::size_t i = limits::frame_header; i-- > 0;)
    size = size << 8 | std::to_integer<std::size_t>(header[i]);
  return size;
}

}  // namespace

Wire::Wire(asio::ip::tcp::socket socket, std::unique_ptr<Tls> tls, std::size_t queue_bound)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      linger_(socket_.get_executor()),
      remote_(remote_of(socket_)),
      queue_bound_(queue_bound) {}

// Receiving.

void Wire::open() {
  if (!tls_)
    on_open();
  else if (!unseal({}))
    return;
  read();
}

void Wire::read() {
  socket_.async_read_some(asio::buffer(chunk_), [this, self = shared_from_this()](
                                                    const std::error_code& error, std::size_t got) {
    if (!is_open()) return;
    if (error) return broken(error);
    take(Bytes(chunk_).first(got));
    if (is_open()) read();
  });
}

void Wire::take(Bytes bytes) {
  if (finishing_) return;
  received_ += bytes.size();
  if (!trusted_ && received_ > limits::stranger + preamble_size)
    return violated(fmt::format("sent more than {} bytes before it was met", limits::stranger));
  if (!tls_)
    input_.insert(input_.end(), bytes.begin(), bytes.end());
  else if (!unseal(bytes))
    return;
  std::size_t at = 0;
  if (!greeted_) {
    if (!take_preamble()) return;
    at = preamble_size;
  }
  while (!finishing_ && is_open() && take_frame(at)) {
  }
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Adds to the input what TLS makes of the bytes. False if the wire is lost by them.
bool Wire::unseal(Bytes sealed) {
  const bool was_established = tls_->established();
  const Result<void> received = tls_->receive(sealed, input_);
  Blob reply = tls_->take_output();
  if (!reply.empty() && reserve(reply.size())) push(std::move(reply));
  if (!received) {
    const Error& why = received.error();
    on_lost(tls_end(why.code(), was_established),
            Error(why.code(), fmt::format("{} {}", remote_, why.message())));
    return false;
  }
  if (!was_established && tls_->established()) {
    received_ = 0;
    on_open();
  }
  return true;
}

bool Wire::take_preamble() {
  const Bytes start(input_.data(), std::min(input_.size(), preamble_size));
  std::optional<VersionRange> versions;
  if (start.size() == preamble_size) versions = read_preamble(start);
  if (!tls_ && Tls::looks_like(start)) {
    on_lost(LinkEnd::credentials,
            Error(Code::permission_denied,
                  fmt::format("{} speaks TLS: it asks for a secret or a certificate, and this "
                              "engine has none (got {})",
                              remote_, quote(input_))));
    return false;
  }
  if (!may_be_preamble(start) || (start.size() == preamble_size && !versions)) {
    on_lost(LinkEnd::not_weft,
            Error(Code::protocol_mismatch, fmt::format("{} does not speak Weft's protocol (got {})",
                                                       remote_, quote(input_))));
    return false;
  }
  if (!versions) return false;
  greeted_ = true;
  on_preamble(*versions);
  return true;
}

bool Wire::take_frame(std::size_t& at) {
  const Bytes rest = Bytes(input_).subspan(at);
  if (rest.size() < limits::frame_header) return false;
  const std::size_t size = frame_size(rest);
  const std::size_t bound = trusted_ ? limits::frame : limits::stranger;
  if (size > bound) {
    violated(fmt::format("announced a frame of {} bytes, more than {}", size, bound));
    return false;
  }
  if (rest.size() < limits::frame_header + size) return false;
  const Bytes whole = rest.first(limits::frame_header + size);
  frame_.assign(whole.begin(), whole.end());
  at += whole.size();
  on_frame(frame_);
  return true;
}

void Wire::violated(std::string what) {
  on_lost(LinkEnd::violation, Error(Code::protocol_mismatch, fmt::format("{} {}", remote_, what)));
}

void Wire::broken(std::error_code why) {
  if (write_error_) why = write_error_;
  if (!finishing_) on_lost(LinkEnd::connection_lost, explain(why));
  close();
}

Error Wire::explain(const std::error_code& why) const {
  if (why == asio::error::eof || why == asio::error::connection_reset ||
      why == asio::error::broken_pipe)
    return Error(Code::peer_down, fmt::format("{} closed the connection without a goodbye: its "
                                              "process ended or was killed",
                                              remote_));
  return Error(Code::peer_down,
               fmt::format("the connection to {} broke: {}", remote_, why.message()));
}

// Sending.

bool Wire::reserve(std::size_t bytes) {
  if (queued_.fetch_add(bytes) + bytes <= queue_bound_) return true;
  queued_ -= bytes;
  if (!overflowed_.exchange(true))
    asio::post(socket_.get_executor(), [this, self = shared_from_this()] {
      if (is_open() && !finishing_)
        on_lost(LinkEnd::not_reading,
                Error(Code::peer_down, fmt::format("{} does not read: {} bytes wait to be sent",
                                                   remote_, queued_.load())));
    });
  return false;
}

void Wire::offer(Blob frame) {
  if (!reserve(frame.size())) return;
  asio::post(socket_.get_executor(),
             [this, self = shared_from_this(), frame = std::move(frame)]() mutable {
               enqueue(std::move(frame));
             });
}

void Wire::write(Blob bytes) {
  if (reserve(bytes.size())) enqueue(std::move(bytes));
}

void Wire::enqueue(Blob bytes) {
  if (!is_open() || finishing_ || write_error_) {
    queued_ -= bytes.size();
    return;
  }
  if (!tls_) return push(std::move(bytes));
  tls_->send(bytes);
  queued_ -= bytes.size();
  Blob sealed = tls_->take_output();
  queued_ += sealed.size();
  push(std::move(sealed));
}

/// The pushed frame is counted already.
void Wire::push(Blob sealed) {
  queue_.push_back(std::move(sealed));
  if (queue_.size() == 1) write_next();
}

void Wire::write_next() {
  asio::async_write(socket_, asio::buffer(queue_.front()),
                    [this, self = shared_from_this()](const std::error_code& error, std::size_t) {
                      queued_ -= queue_.front().size();
                      queue_.pop_front();
                      if (!is_open()) return;
                      // What the other side said last may still wait to be read: reading ends next.
                      write_error_ = error;
                      if (error) return;
                      std::error_code ignored;
                      if (!queue_.empty()) return write_next();
                      if (finishing_) socket_.shutdown(asio::socket_base::shutdown_send, ignored);
                    });
}

// Ending.

void Wire::finish(Nanoseconds linger) {
  if (finishing_ || !is_open()) return;
  finishing_ = true;
  std::error_code ignored;
  if (queue_.empty()) socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  linger_.expires_after(linger);
  linger_.async_wait([this, self = shared_from_this()](const std::error_code&) { close(); });
}

void Wire::close() {
  if (!is_open()) return;
  std::error_code ignored;
  socket_.close(ignored);
  linger_.cancel();
  on_closed();
}

}  // namespace weft::core
