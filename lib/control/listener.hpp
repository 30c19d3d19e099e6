// Where strangers knock.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "control/control.hpp"
#include "control/sockets.hpp"

namespace weft::core {

class Listener {
 public:
  using Accepted = std::function<void(asio::ip::tcp::socket)>;

  /// Binds to all addresses of `config.listen`, which must not be empty.
  static Result<std::unique_ptr<Listener>> open(asio::io_context& context,
                                                const ControlConfig& config);
  /// The same for addresses that are known: to all that this machine has, at the same port, also
  /// where that is 0. At least one has to be this machine's.
  static Result<std::unique_ptr<Listener>> open(asio::io_context& context,
                                                const ControlConfig& config,
                                                const Endpoints& endpoints);
  /// The address that peers are told.
  const std::string& address() const noexcept { return address_; }
  /// All that it is bound to.
  Endpoints bound() const;
  /// Hands each connection to `accepted`, on the control thread.
  void start(Accepted accepted);
  void close();

 private:
  /// One address.
  struct Bound {
    explicit Bound(asio::io_context& context) : acceptor(context), pause(context) {}
    asio::ip::tcp::acceptor acceptor;
    asio::steady_timer pause;
  };

  explicit Listener(asio::io_context& context) : context_(context) {}
  std::error_code bind(const asio::ip::tcp::endpoint& endpoint);
  Result<void> bind_all(const Endpoints& endpoints);
  Result<void> bind_each(const Endpoints& endpoints);
  void wait(Bound& bound);
  bool accept_one(Bound& bound);

  asio::io_context& context_;
  std::list<Bound> bound_;
  Accepted accepted_;
  std::string address_;
};

}  // namespace weft::core
