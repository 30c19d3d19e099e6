#include "nixl/agents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/sync.hpp"

namespace weft::nixl {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]");
}

Result<void> check_reachable(const Connection& connection) {
  if (!is_loopback(connection.address) || connection.host == this_host()) return {};
  return fail(Code::unavailable,
              fmt::format("the engine of another machine listens at {}, which only that machine "
                          "reaches; set WEFT_LISTEN there (0.0.0.0:0 with WEFT_ADVERTISE, or "
                          "HOST:0), and WEFT_SECRET_FILE on all",
                          connection.address));
}

}  // namespace

Result<LinkPtr> Agents::meet(const std::string& agent, const Connection& connection,
                             Deadline deadline) {
  if (auto reachable = check_reachable(connection); !reachable)
    return fail(std::move(reachable.error()));
  const auto peer = engine_.connect(connection.address, deadline);
  if (!peer) return fail(peer.error());
  if (peer->name() != connection.engine)
    return fail(Error(Code::stale, fmt::format("{} answers at {} in place of {}: the metadata is "
                                               "of an earlier life",
                                               peer->name(), connection.address, connection.engine))
                    .with_peer(connection.engine));
  return std::make_shared<Link>(engine_, cutter_, *peer, agent,
                                std::min<std::size_t>(signal_bytes_, connection.max_message));
}

Result<void> Agents::load(const std::string& agent, const std::string& info) {
  auto connection = decode_connection(info);
  if (!connection) return fail(std::move(connection.error()));
  {
    const core::Lock lock(mutex_);
    agents_[agent] = {std::move(*connection), nullptr};
  }
  return connect(agent);
}

Result<void> Agents::connect(const std::string& agent) {
  return connect(agent, Deadline::in(meeting_time));
}

Result<LinkPtr> Agents::meet_again(const std::string& agent) {
  // It was disconnected meanwhile: leave it so.
  if (auto known = find(agent); !known) return known;
  if (auto met = connect(agent, Deadline::in(std::chrono::seconds(1))); !met)
    return fail(std::move(met.error()));
  return find(agent);
}

Result<void> Agents::connect(const std::string& agent, Deadline deadline) {
  Connection connection;
  {
    const core::Lock lock(mutex_);
    const auto known = agents_.find(agent);
    if (known == agents_.end())
      return fail(Code::not_found, fmt::format("nothing was loaded of an agent '{}'", agent));
    if (known->second.link && known->second.link->peer().up()) return {};
    connection = known->second.connection;
  }
  auto link = meet(agent, connection, deadline);
  if (!link) return fail(std::move(link.error()));
  const core::Lock lock(mutex_);
  agents_[agent] = {std::move(connection), std::move(*link)};
  return {};
}

Result<void> Agents::disconnect(const std::string& agent) {
  const core::Lock lock(mutex_);
  const auto known = agents_.find(agent);
  if (known == agents_.end())
    return fail(Code::not_found, fmt::format("nothing was loaded of an agent '{}'", agent));
  known->second.link = nullptr;
  return {};
}

Result<LinkPtr> Agents::find(const std::string& agent) const {
  const core::Lock lock(mutex_);
  const auto known = agents_.find(agent);
  if (known != agents_.end() && known->second.link) return known->second.link;
  return fail(Code::not_found, fmt::format("agent '{}' is not connected", agent));
}

}  // namespace weft::nixl
