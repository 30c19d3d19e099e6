// A client of HTTP without manners: it sends what it is told to, byte by byte if need be.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace weft::test {

/// Blocking; every wait ends after some seconds.
class HttpClient {
 public:
  /// To "127.0.0.1:80" or "unix:PATH".
  explicit HttpClient(const std::string& address);

  /// False if the other side has closed.
  bool send(std::string_view bytes);
  /// Everything until the other side closes, or resets the connection.
  std::string receive_all();

 private:
  core::Descriptor socket_;
};

/// The response to "GET `path`", with its head.
std::string http_get(const std::string& address, std::string_view path);
/// What comes behind the head of a response.
std::string body_of(const std::string& response);

}  // namespace weft::test
