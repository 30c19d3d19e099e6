// Where strangers knock.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
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
  /// The same for addresses that are known (see listen_at()).
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
    Bound(asio::io_context& context, asio::ip::tcp::acceptor opened)
        : acceptor(std::move(opened)), pause(context) {}
    asio::ip::tcp::acceptor acceptor;
    asio::steady_timer pause;
  };

  Listener() = default;
  void wait(Bound& bound);
  bool accept_one(Bound& bound);

  std::list<Bound> bound_;
  Accepted accepted_;
  std::string address_;
};

}  // namespace weft::core
