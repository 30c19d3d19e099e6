#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/sync.hpp"
#include "control/plane.hpp"

namespace weft::core {
namespace {

Result<HostPort> parse_target(std::string_view address) {
  Result<HostPort> where = parse_address(address);
  if (where && where->port.value_or(0) == 0)
    return fail(Code::invalid_argument, fmt::format("'{}' names no port to connect to", address));
  return where;
}

}  // namespace

Result<LinkId> ControlPlane::connect(std::string_view address, Deadline deadline, bool keep) {
  Result<HostPort> where = parse_target(address);
  if (!where) return fail(std::move(where.error()));
  const auto alive = shared_from_this();
  const auto attempt = std::make_shared<Attempt>(std::string(address), deadline, keep);
  {
    const Lock lock(mutex_);
    if (stopping_) return fail(Code::closed, "this engine is closing");
    attempts_.insert(attempt);
  }
  begin(attempt, *where);
  Result<LinkId> result = attempt->wait();
  const Lock lock(mutex_);
  attempts_.erase(attempt);
  if (!result && !stopping_) asio::post(io_, [this, attempt] { abandon(attempt); });
  return result;
}

void ControlPlane::begin(const AttemptPtr& attempt, const HostPort& where) {
  attempt->doing("resolving the host name");
  resolve(where, [weak = weak_from_this(), attempt](Result<Endpoints> endpoints) {
    const std::shared_ptr<ControlPlane> plane = weak.lock();
    if (!plane) return;
    asio::post(plane->io_,
               [own = plane.get(), attempt, endpoints = std::move(endpoints)]() mutable {
                 own->dial(attempt, std::move(endpoints));
               });
  });
}

void ControlPlane::succeed(const AttemptPtr& attempt, const ConnectionPtr& link) {
  if (attempt->keep) keep(link->peer.name, attempt->address);
  attempt->finish(link->id);
}

void ControlPlane::dial(const AttemptPtr& attempt, Result<Endpoints> endpoints) {
  if (attempt->finished()) return;
  if (!endpoints) return attempt->finish(fail(std::move(endpoints.error())));
  attempt->doing("waiting for the connection");
  const auto dialer =
      std::make_shared<Dialer>(io_, attempt->address, std::move(*endpoints), attempt->deadline);
  dialers_.emplace(attempt, dialer);
  dialer->start([this, attempt](Result<asio::ip::tcp::socket> socket) {
    dialled(attempt, std::move(socket));
  });
}

void ControlPlane::dialled(const AttemptPtr& attempt, Result<asio::ip::tcp::socket> socket) {
  dialers_.erase(attempt);
  if (!socket) return attempt->finish(fail(std::move(socket.error())));
  set_options(*socket, config_.death_after);
  add(std::move(*socket), attempt)->start();
}

void ControlPlane::abandon(const AttemptPtr& attempt) {
  if (const auto dialer = dialers_.find(attempt); dialer != dialers_.end()) {
    dialer->second->cancel();
    dialers_.erase(dialer);
  }
  const auto waited_for = [&](const auto& entry) {
    const std::vector<AttemptPtr>& attempts = entry.second->attempts;
    return std::find(attempts.begin(), attempts.end(), attempt) != attempts.end();
  };
  const auto found = std::find_if(connections_.begin(), connections_.end(), waited_for);
  if (found == connections_.end()) return;
  const ConnectionPtr connection = found->second;
  std::erase(connection->attempts, attempt);
  if (connection->initiated && connection->attempts.empty())
    end(connection, LinkEnd::disconnected, Error(Code::cancelled, "connect() gave up waiting"),
        Goodbye{"gave up waiting for the connection"});
}

void ControlPlane::join(const AttemptPtr& attempt, const ConnectionPtr& link) {
  if (link->stage == Stage::up) return succeed(attempt, link);
  attempt->doing("waiting until both sides are ready");
  link->attempts.push_back(attempt);
}

}  // namespace weft::core
