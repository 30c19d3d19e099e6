#include "nixl/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/sync.hpp"

namespace weft::nixl {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]");
}

Result<void> check_reachable(const Connection& connection) {
  if (!is_loopback(connection.address)) return {};
  const bool one_host = connection.host == this_host();
  const bool known = !connection.network.empty() && !this_network().empty();
  if (one_host && (!known || connection.network == this_network())) return {};
  return fail(
      Code::unavailable,
      fmt::format("the engine of another {} listens at {}, which only that one reaches; set "
                  "WEFT_LISTEN there (0.0.0.0:0 with WEFT_ADVERTISE, or HOST:0), and "
                  "WEFT_SECRET_FILE on all",
                  one_host ? "container of this machine" : "machine", connection.address));
}

Error unknown(const std::string& agent) {
  return Error(Code::not_found, fmt::format("nothing was loaded of an agent '{}'", agent));
}

/// One that is well is used at once; the rest is met behind the call.
Result<void> begun(const Result<LinkPtr>& meeting) {
  if (!meeting) return fail(meeting.error());
  if (*meeting) (*meeting)->wait_met((*meeting)->courtesy());
  return {};
}

}  // namespace

Result<LinkPtr> Agents::meet(const std::string& agent, Agent& known) {
  if (known.link && known.link->usable()) return nullptr;
  auto link = Link::meet(side_, agent, known.connection,
                         std::min<std::size_t>(signal_bytes_, known.connection.max_message));
  if (link) known.link = *link;
  return link;
}

Result<LinkPtr> Agents::keep(const std::string& agent, Connection connection) {
  const core::Lock lock(mutex_);
  Agent& known = agents_[agent];
  if (known.connection != connection) known = {std::move(connection), nullptr};
  return meet(agent, known);
}

Result<LinkPtr> Agents::meet_known(const std::string& agent) {
  const core::Lock lock(mutex_);
  const auto known = agents_.find(agent);
  if (known == agents_.end()) return fail(unknown(agent));
  return meet(agent, known->second);
}

Result<void> Agents::load(const std::string& agent, const std::string& info) {
  auto connection = decode_connection(info);
  if (!connection) return fail(std::move(connection.error()));
  if (auto reachable = check_reachable(*connection); !reachable) return reachable;
  return begun(keep(agent, std::move(*connection)));
}

Result<void> Agents::connect(const std::string& agent) {
  return begun(meet_known(agent));
}

Result<LinkPtr> Agents::meet_again(const std::string& agent) {
  // It was disconnected meanwhile: leave it so.
  if (auto known = find(agent); !known) return known;
  if (auto met = meet_known(agent); !met) return met;
  return find(agent);
}

Result<void> Agents::disconnect(const std::string& agent) {
  const core::Lock lock(mutex_);
  const auto known = agents_.find(agent);
  if (known == agents_.end()) return fail(unknown(agent));
  known->second.link = nullptr;
  return {};
}

Result<LinkPtr> Agents::find(const std::string& agent) const {
  const core::Lock lock(mutex_);
  const auto known = agents_.find(agent);
  if (known != agents_.end() && known->second.link) return known->second.link;
  return fail(Code::not_found, fmt::format("agent '{}' is not connected", agent));
}

void Agents::close(Deadline deadline) {
  side_.threads->close();
  std::ignore = side_.threads->wait_idle(deadline);
}

}  // namespace weft::nixl
