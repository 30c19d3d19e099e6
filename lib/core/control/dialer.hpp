// Connects a socket to the first of some endpoints that answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "control/sockets.hpp"

namespace weft::core {

class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  using Done = std::function<void(Result<asio::ip::tcp::socket>)>;

  /// `address`: what the user asked for, for errors.
  Dialer(asio::io_context& context, std::string address, Endpoints endpoints, Deadline deadline)
      : socket_(context),
        timer_(context),
        address_(std::move(address)),
        endpoints_(std::move(endpoints)),
        deadline_(deadline) {}

  /// Tries the endpoints in turn, each for its share of the time. Calls `done` once, unless
  /// cancelled.
  void start(Done done);
  void cancel();

 private:
  void try_next();
  void tried(const std::error_code& error);
  void failed(const std::error_code& error);

  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  const std::string address_;
  const Endpoints endpoints_;
  const Deadline deadline_;
  std::size_t next_ = 0;
  Done done_;
};

}  // namespace weft::core
