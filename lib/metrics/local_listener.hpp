// A listening socket that only this machine reaches, unless more was asked for: "127.0.0.1:9400",
// "[::1]:9400", "unix:/run/weft.sock".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "control/asio.hpp"

namespace weft::core {

class LocalListener {
 public:
  using Protocol = asio::generic::stream_protocol;
  using Acceptor = asio::basic_socket_acceptor<Protocol>;

  /// `anywhere`: not on loopback alone. The file of a Unix socket that has no listener any more
  /// is replaced.
  static Result<std::unique_ptr<LocalListener>> open(asio::io_context& context,
                                                     std::string_view address, bool anywhere);
  ~LocalListener();

  Acceptor& acceptor() noexcept { return acceptor_; }
  /// With the port that the system chose.
  const std::string& address() const noexcept { return address_; }

 private:
  explicit LocalListener(asio::io_context& context) : acceptor_(context) {}
  Result<void> open_tcp(std::string_view address, bool anywhere);
  Result<void> open_unix(const std::string& file);
  std::error_code listen_on(const Protocol::endpoint& endpoint, const char* file = nullptr);

  Acceptor acceptor_;
  std::string address_;
  std::string file_;  // of a Unix socket; removed at the end
};

}  // namespace weft::core
