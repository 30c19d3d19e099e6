#include "common/helper.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace weft::tool {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longest_document = 1 << 17;

Error system_error(const char* call) {
  return Error(Code::unavailable, fmt::format("{}: {}", call, std::strerror(errno)));
}

/// POLLIN, or 0 for nothing but the other side's end. False where it does not come in time.
bool wait_for(short events, const Descriptor& descriptor, Deadline deadline) {
  pollfd waited{descriptor.get(), events, 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left());
    ready = ::poll(&waited, 1, static_cast<int>(left.count()));
  } while (ready < 0 && errno == EINTR && !deadline.passed());
  return ready > 0;
}

}  // namespace

std::optional<Talk> Talk::of_helper(const char* role, int count, char** words) {
  if (count != 3 || std::strcmp(words[1], role) != 0) return std::nullopt;
  return Talk(Descriptor(std::atoi(words[2])));
}

Result<void> Talk::say(const Json& document) const {
  const std::string text = document.dump();
  if (text.size() > longest_document)
    return fail(Code::invalid_argument, "what there is to say is too long");
  if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET) return {};
  return fail(system_error("send"));
}

Result<Json> Talk::hear(Deadline deadline) const {
  if (!wait_for(POLLIN, socket_, deadline))
    return fail(Code::timed_out, "it did not answer in time (--timeout)");
  std::string text(longest_document, '\0');
  const auto receive = [&] { return ::recv(socket_.get(), text.data(), text.size(), 0); };
  ssize_t length = receive();
  // It has ended without reading everything; its last words come behind that.
  if (length < 0 && errno == ECONNRESET) length = receive();
  if (length < 0) return fail(system_error("recv"));
  if (length == 0) return fail(Code::unavailable, "it ended early");
  Json document = Json::parse(text.substr(0, static_cast<std::size_t>(length)), nullptr, false);
  if (!document.is_object()) return fail(Code::protocol_mismatch, "it said what is no document");
  return document;
}

void Talk::end() const {
  ::shutdown(socket_.get(), SHUT_RD);
}

Result<Helper> Helper::start(const std::string& name, const char* role, const Json& task,
                             std::string setting) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(system_error("socketpair"));
  Talk here{Descriptor(ends[0])};
  const Descriptor there(ends[1]);
  auto child = Child::start(name, {role, std::to_string(there.get())}, there, std::move(setting));
  if (!child) return fail(std::move(child.error()));
  Helper helper(std::move(*child), std::move(here));
  helper.say(task);
  return helper;
}

Result<Json> Helper::hear(Deadline deadline) const {
  const auto failed = [&](Code code, const std::string& why) {
    return fail(code, fmt::format("{}: {}", child_.name(), why));
  };
  auto answer = talk_.hear(deadline);
  if (!answer) return failed(answer.error().code(), answer.error().message());
  if (!answer->contains("error")) return answer;
  return failed(Code::remote_failed, answer->at("error").get<std::string>());
}

Result<Json> Helper::ask(const Json& question, Deadline deadline) const {
  if (auto said = talk_.say(question); !said) return fail(std::move(said.error()));
  return hear(deadline);
}

void Helper::end(Deadline deadline) {
  if (!wait_for(0, child_.output(), deadline)) child_.signal(SIGKILL);
  child_.reap();
}

}  // namespace weft::tool
