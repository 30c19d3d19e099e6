// A socket that carries a preamble and then frames, both ways, plain or within TLS. Used on the
// control thread only, except offer().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "control/asio.hpp"
#include "control/link_end.hpp"
#include "control/preamble.hpp"
#include "control/tls.hpp"

namespace weft::core {

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  /// `tls`: null for a plain wire. `queue_bound`: bytes that may wait to be written.
  Wire(asio::ip::tcp::socket socket, std::unique_ptr<Tls> tls, std::size_t queue_bound);
  virtual ~Wire() = default;

  /// Queues a frame, from any thread. When the queue is full the wire is lost.
  void offer(Blob frame);
  /// "1.2.3.4:5": the socket's other end.
  const std::string& remote() const noexcept { return remote_; }
  /// Closes at once; what is queued is dropped.
  void close();
  /// From here on the other side may send any number of bytes in frames of the full size.
  void trust() noexcept { trusted_ = true; }

 protected:
  void open();
  /// Of the protocol; not before on_open().
  void write(Blob bytes);
  /// Writes what is queued, then closes in an orderly way: at once when the other side has closed
  /// too, after `linger` at the latest. Nothing is received any more.
  void finish(Nanoseconds linger);

  /// Bytes may be written: at once, or when the TLS handshake is done.
  virtual void on_open() = 0;
  virtual void on_preamble(VersionRange versions) = 0;
  virtual void on_frame(Bytes frame) = 0;
  /// The other side is gone, or does what it must not. Called until the wire is closed or finished.
  virtual void on_lost(LinkEnd how, Error why) = 0;
  /// The socket was closed; called once.
  virtual void on_closed() = 0;

 private:
  bool is_open() const noexcept { return socket_.is_open(); }
  void read();
  void take(Bytes bytes);
  bool unseal(Bytes sealed);
  bool take_preamble();
  bool take_frame(std::size_t& at);
  void violated(std::string what);
  void broken(std::error_code why);
  Error explain(const std::error_code& why) const;
  bool reserve(std::size_t bytes);
  void enqueue(Blob bytes);
  void push(Blob sealed);
  void write_next();

  asio::ip::tcp::socket socket_;
  const std::unique_ptr<Tls> tls_;
  asio::steady_timer linger_;
  std::string remote_;

  bool greeted_ = false;
  bool trusted_ = false;
  bool finishing_ = false;
  std::size_t received_ = 0;  // in the TLS handshake, or after it
  std::array<std::byte, 8192> chunk_;
  std::vector<std::byte> input_;  // received and not yet taken
  std::vector<std::byte> frame_;  // the one being looked at, aligned

  const std::size_t queue_bound_;
  std::atomic<std::size_t> queued_{0};
  std::atomic<bool> overflowed_{false};
  std::deque<Blob> queue_;
  std::error_code write_error_;
};

}  // namespace weft::core
