// Where strangers knock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "control/control.hpp"

namespace weft::core {

class Listener {
 public:
  using Accepted = std::function<void(asio::ip::tcp::socket)>;

  /// Binds to `config.listen`, which must not be empty.
  static Result<std::unique_ptr<Listener>> open(asio::io_context& context,
                                                const ControlConfig& config);
  /// The address that peers are told.
  const std::string& address() const noexcept { return address_; }
  /// Hands each connection to `accepted`, on the control thread.
  void start(Accepted accepted);
  void close();

 private:
  explicit Listener(asio::io_context& context) : acceptor_(context), pause_(context) {}
  Result<void> bind(const asio::ip::tcp::endpoint& endpoint);
  void wait();
  bool accept_one();

  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  Accepted accepted_;
  std::string address_;
};

}  // namespace weft::core
