// As much of HTTP/1.1 as it takes to serve a few pages, one request for each
// connection.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::core {

struct HttpPage {
  std::string path;  // "/metrics"
  std::string content_type;
  std::function<std::string()> make;  // called for each request
};

/// The most bytes that a request's head may have.
inline constexpr std::size_t longest_request = 8 * 1024;

/// Where the head of a request ends, behind its empty line; npos if it has not ended yet.
std::size_t head_end(std::string_view received);

/// The whole response to a request's head: a page, or why there is none.
std::string http_response(std::string_view head, const std::vector<HttpPage>& pages);
/// To a head that does not end.
std::string http_too_long();

}  // namespace weft::core
