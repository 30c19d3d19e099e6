#include "metrics/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace weft::core {
namespace {

struct RequestLine {
  std::string_view method, path;
};

/// "GET /metrics?x=y HTTP/1.1"
std::optional<RequestLine> parse_request_line(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == 0 || last <= first + 1) return std::nullopt;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return std::nullopt;
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), plain))
    return std::nullopt;
  return RequestLine{line.substr(0, first), target.substr(0, target.find('?'))};
}

std::string response(std::string_view status, std::string_view content_type, std::string_view body,
                     bool with_body = true, std::string_view more_headers = {}) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      status, content_type, body.size(), more_headers, with_body ? body : "");
}

std::string refusal(std::string_view status, std::string_view why,
                    std::string_view more_headers = {}) {
  return response(status, "text/plain; charset=utf-8", why, true, more_headers);
}

}  // namespace

std::size_t head_end(std::string_view received) {
  constexpr std::string_view empty_line = "\r\n\r\n";
  const std::size_t at = received.find(empty_line);
  return at == received.npos ? at : at + empty_line.size();
}

std::string http_response(std::string_view head, const std::vector<HttpPage>& pages) {
  const auto line = parse_request_line(head);
  if (!line) return refusal("400 Bad Request", "this is no request of HTTP/1.1\n");
  const bool get = line->method == "GET";
  if (!get && line->method != "HEAD")
    return refusal("405 Method Not Allowed", "there is only GET\n", "Allow: GET, HEAD\r\n");
  const auto page = std::find_if(pages.begin(), pages.end(),
                                 [&](const HttpPage& each) { return each.path == line->path; });
  if (page != pages.end()) return response("200 OK", page->content_type, page->make(), get);
  std::string known = "there is nothing here; there is:\n";
  for (const HttpPage& each : pages) known += each.path + '\n';
  return response("404 Not Found", "text/plain; charset=utf-8", known, get);
}

std::string http_too_long() {
  return refusal("431 Request Header Fields Too Large",
                 fmt::format("a request may have {} bytes\n", longest_request));
}

}  // namespace weft::core
