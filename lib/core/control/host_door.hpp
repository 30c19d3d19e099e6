// Where processes of this host ask an engine for its descriptors. Strangers get nothing: not those
// of other users, nor without the pass of a connection, and a limited time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "control/host_socket.hpp"

namespace weft::core {

/// Control thread only, after open().
class HostDoor {
 public:
  /// The answer to a question, on the control thread.
  using Answer = std::function<Result<Answered>(const HostQuestion&)>;
  /// Bounds against those who connect and say nothing.
  struct Limits {
    std::size_t visitors = 64;
    Nanoseconds time = std::chrono::seconds(5);
  };

  /// `folder`: for a socket that other network namespaces reach too; empty: none. Null if there is
  /// none and no other can be had. Files that killed engines left behind are removed.
  static Result<std::unique_ptr<HostDoor>> open(asio::io_context& context,
                                                const std::string& folder, const Limits& limits,
                                                Answer answer);
  ~HostDoor();
  HostDoor(const HostDoor&) = delete;
  HostDoor& operator=(const HostDoor&) = delete;

  const std::string& name() const noexcept { return name_; }
  void start();
  void close();

 private:
  struct Listening {
    explicit Listening(asio::io_context& context) : socket(context), pause(context) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer pause;
  };
  struct Visitor {
    explicit Visitor(asio::io_context& context) : socket(context), limit(context) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer limit;
  };

  HostDoor(asio::io_context& context, const Limits& limits, Answer answer);
  Result<void> listen(const SocketAddress& address);
  Result<void> listen_in(const std::string& folder);
  void wait(Listening& at);
  bool accept_one(Listening& at);
  void serve(std::uint64_t visitor);

  asio::io_context& context_;
  const Limits limits_;
  const Answer answer_;
  std::string name_, file_;
  std::vector<std::unique_ptr<Listening>> listening_;
  std::map<std::uint64_t, std::unique_ptr<Visitor>> visitors_;  // oldest first
  std::uint64_t next_visitor_ = 0;
};

}  // namespace weft::core
