// Serves pages over HTTP, on a thread of its own: a slow client holds up no other.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "metrics/http.hpp"
#include "metrics/local_listener.hpp"

namespace weft::core {

class MetricsSession;

class MetricsEndpoint {
 public:
  struct Limits {
    /// From a connection's beginning to its end.
    Nanoseconds time = std::chrono::seconds(5);
    /// At a time; the oldest goes when there is one more.
    std::size_t connections = 16;
  };

  /// Listens (see LocalListener::open), and answers until it is destroyed, which waits for a page
  /// that is just being made and for nothing else.
  static Result<std::unique_ptr<MetricsEndpoint>> open(std::string_view address, bool anywhere,
                                                       std::vector<HttpPage> pages,
                                                       const Limits& limits);
  static Result<std::unique_ptr<MetricsEndpoint>> open(std::string_view address, bool anywhere,
                                                       std::vector<HttpPage> pages) {
    return open(address, anywhere, std::move(pages), Limits{});
  }
  ~MetricsEndpoint();

  const std::string& address() const noexcept { return listener_->address(); }

 private:
  friend class MetricsSession;
  MetricsEndpoint(std::vector<HttpPage> pages, const Limits& limits)
      : pages_(std::move(pages)), limits_(limits) {}
  Result<void> start();
  void wait(LocalListener::Acceptor& acceptor);
  void pause(LocalListener::Acceptor& acceptor);
  std::error_code accept(LocalListener::Acceptor& acceptor);

  const std::vector<HttpPage> pages_;
  const Limits limits_;
  asio::io_context io_{1};
  std::unique_ptr<LocalListener> listener_;
  // Those of its thread.
  std::uint64_t next_session_ = 0;
  std::map<std::uint64_t, std::shared_ptr<MetricsSession>> sessions_;  // oldest first
  std::thread thread_;
};

}  // namespace weft::core
