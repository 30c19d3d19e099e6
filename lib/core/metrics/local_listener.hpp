// A listening socket that only this machine reaches, unless more was asked for: "127.0.0.1:9400",
// "[::1]:9400", "unix:/run/weft.sock".
#pragma once

#include <list>
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

  /// At least one; of a name there is one for each of its addresses.
  std::list<Acceptor>& acceptors() noexcept { return acceptors_; }
  /// With the port that the system chose.
  const std::string& address() const noexcept { return address_; }

 private:
  explicit LocalListener(asio::io_context& context) : context_(context) {}
  Result<void> open_tcp(std::string_view address, bool anywhere);
  Result<void> open_unix(const std::string& file);
  std::error_code listen_on(const std::string& file);

  asio::io_context& context_;
  std::list<Acceptor> acceptors_;
  std::string address_;
  std::string file_;  // of a Unix socket; removed at the end
};

}  // namespace weft::core
