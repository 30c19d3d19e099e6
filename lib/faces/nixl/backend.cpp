#include "nixl/backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <set>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "nixl/options.hpp"
#include "nixl/prepare.hpp"
#include "nixl/remote_memory.hpp"
#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

constexpr auto closing_time = std::chrono::seconds(2);
// libnixl holds its lock meanwhile, and frees the memory afterwards whatever it is told.
constexpr auto longest_release = std::chrono::seconds(10);

/// Nothing may be thrown into libnixl.
template <typename Call>
abi::Status guarded(const char* what, Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    core::log(LogLevel::error, "NIXL backend: {}: {}", what, error.what());
  } catch (...) {
    core::log(LogLevel::error, "NIXL backend: {}: unknown exception", what);
  }
  return abi::Status::backend;
}

abi::Status status_of(const char* what, const Result<void>& result) {
  return result ? abi::Status::success : refuse(what, result.error());
}

std::string text_of(const Blob& blob) {
  return std::string(reinterpret_cast<const char*>(blob.data()), blob.size());
}

/// A server has no other way to see which network it is on.
void let_it_be_heard() {
  if (std::getenv("WEFT_LOG") == nullptr) set_log_level(LogLevel::info);
}

void introduce(const Engine& engine, const std::string& agent, const LibNixl& library) {
  const Info info = engine.info();
  std::set<std::string> rails, libfabric;
  for (const RailInfo& rail : info.rails) {
    rails.insert(fmt::format("{} on {}", rail.capability.provider, rail.capability.domain));
    if (!rail.capability.libfabric_version.empty())
      libfabric.insert(rail.capability.libfabric_version);
  }
  core::log(LogLevel::info,
            "NIXL backend of agent {}: {}; libfabric {}; NIXL {}; listens at {}; metrics at {}{}{}",
            agent, fmt::join(rails, ", "), libfabric.empty() ? "none" : *libfabric.begin(),
            library.version.empty() ? "of unknown version" : library.version, engine.address(),
            engine.metrics_address().empty() ? "no address (WEFT_METRICS_LISTEN)"
                                             : engine.metrics_address(),
            info.fallback.empty() ? "" : "; ", info.fallback);
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::open(const abi::InitParameters& init,
                                               const Config& config, const LibNixl& library) {
  let_it_be_heard();
  auto engine = Engine::open(config);
  if (!engine) return fail(std::move(engine.error()));
  if (engine->address().empty())
    return fail(Code::invalid_argument,
                "an agent has to listen, for others to reach it: `listen` is empty");
  introduce(*engine, init.agent, library);
  return std::unique_ptr<Backend>(new Backend(init, std::move(*engine)));
}

Backend::Backend(const abi::InitParameters& init, Engine engine)
    : BackendEngine(init),
      engine_(std::make_shared<Engine>(std::move(engine))),
      config_(config_of(*engine_)),
      agents_({engine_, Cutter(engine_), config_.default_timeout}, config_.max_message),
      inbox_(*engine_),
      loopback_(*engine_, init.agent) {}

Backend::~Backend() {
  const auto deadline = Deadline::in(closing_time);
  std::ignore = engine_->close(deadline);
  agents_.close(deadline);
}

abi::MemoryTypes Backend::memory_types() {
  return {abi::MemoryType::dram, abi::MemoryType::vram, abi::MemoryType::block,
          abi::MemoryType::file};
}

abi::Status Backend::registerMem(const abi::BlobDescriptor& memory, const abi::MemoryType& type,
                                 abi::Metadata*& out) {
  constexpr auto what = "memory was not registered";
  return guarded(what, [&] {
    auto registration = Registration::make(*engine_, file_numbers_, memory, type);
    if (!registration) return refuse(what, registration.error());
    out = registration->release();
    return abi::Status::success;
  });
}

abi::Status Backend::deregisterMem(abi::Metadata* metadata) {
  constexpr auto what = "memory is still in use, and must not be reused";
  return guarded(what, [&] {
    std::unique_ptr<Registration> registration(static_cast<Registration*>(metadata));
    registration->forget_number();
    const auto deadline = Deadline::in(longest_release);
    auto released = loopback_.forget(*registration, deadline);
    if (released) released = registration->release(deadline);
    if (!released) {
      const core::Lock lock(kept_mutex_);
      kept_registrations_.push_back(std::move(registration));
    }
    return status_of(what, released);
  });
}

abi::Status Backend::connect(const std::string& agent) {
  constexpr auto what = "no connection";
  if (agent == local_agent()) return abi::Status::success;  // made when it is needed
  return guarded(what, [&] { return status_of(what, agents_.connect(agent)); });
}

abi::Status Backend::disconnect(const std::string& agent) {
  constexpr auto what = "not disconnected";
  if (agent == local_agent()) return abi::Status::success;
  return guarded(what, [&] { return status_of(what, agents_.disconnect(agent)); });
}

abi::Status Backend::unloadMD(abi::Metadata* metadata) {
  delete metadata;
  return abi::Status::success;
}

abi::Status Backend::prepXfer(const abi::Operation& operation, const abi::MetaList& local,
                              const abi::MetaList& remote, const std::string&,
                              abi::RequestHandle*& handle, const abi::RequestOptions*) const {
  constexpr auto what = "a transfer was not prepared";
  return guarded(what, [&] {
    auto request = prepare(operation, local, remote, agents_, loopback_);
    if (!request) return refuse(what, request.error());
    handle = new Handle(std::move(*request));
    return abi::Status::success;
  });
}

abi::Status Backend::postXfer(const abi::Operation&, const abi::MetaList&, const abi::MetaList&,
                              const std::string&, abi::RequestHandle*& handle,
                              const abi::RequestOptions* options) const {
  constexpr auto what = "a transfer was not posted";
  return guarded(what, [&] {
    Request& request = *static_cast<Handle&>(*handle).request;
    if (options == nullptr || !options->notifies) return request.post(nullptr);
    const auto link = request.link();
    if (!link) return refuse(what, link.error());
    const auto notification = outgoing(options->notification, **link, request.carriers());
    if (!notification) return refuse(what, notification.error());
    return request.post(&*notification);
  });
}

abi::Status Backend::checkXfer(abi::RequestHandle* handle) const {
  return guarded("a transfer was not checked",
                 [&] { return static_cast<Handle*>(handle)->request->check(); });
}

abi::Status Backend::releaseReqH(abi::RequestHandle* handle) const {
  return guarded("a transfer was not released", [&] {
    std::unique_ptr<Handle> known(static_cast<Handle*>(handle));
    const abi::Status status = known->request->release();
    if (status == abi::Status::repost_active) std::ignore = known.release();
    if (status == abi::Status::backend) {
      const core::Lock lock(kept_mutex_);
      kept_requests_.push_back(known->request);
    }
    return status;
  });
}

abi::Status Backend::getPublicData(const abi::Metadata* metadata, std::string& blob) const {
  return guarded("no metadata", [&] {
    blob = text_of(static_cast<const Registration*>(metadata)->grant());
    return abi::Status::success;
  });
}

abi::Status Backend::getConnInfo(std::string& info) const {
  return guarded("no connection info", [&] {
    info = encode({engine_->name(), engine_->address(), this_host(),
                   static_cast<std::uint32_t>(config_.max_message), this_network()});
    return abi::Status::success;
  });
}

abi::Status Backend::loadRemoteConnInfo(const std::string& agent, const std::string& info) {
  constexpr auto what = "an agent can't be reached";
  return guarded(what, [&] { return status_of(what, agents_.load(agent, info)); });
}

abi::Status Backend::loadRemoteMD(const abi::BlobDescriptor& memory, const abi::MemoryType&,
                                  const std::string& agent, abi::Metadata*& out) {
  constexpr auto what = "an agent's memory can't be used";
  return guarded(what, [&] {
    const auto link = agents_.find(agent);
    if (!link) return refuse(what, link.error());
    auto remote = RemoteMemory::load(*link, memory);
    if (!remote) return refuse(what, remote.error());
    out = remote->release();
    return abi::Status::success;
  });
}

abi::Status Backend::loadLocalMD(abi::Metadata* in, abi::Metadata*& out) {
  return guarded("this agent's memory can't be used by itself", [&] {
    out = new OwnMemory(*static_cast<Registration*>(in));
    return abi::Status::success;
  });
}

abi::Status Backend::queryMem(const abi::BlobList& asked,
                              std::vector<std::optional<abi::Parameters>>& found) const {
  constexpr auto what = "memory was not looked up";
  return guarded(what, [&] {
    if (!is_file(asked.type))
      return refuse(what, Error(Code::unsupported, "only files can be looked up, by their paths"));
    found.clear();
    for (const abi::BlobDescriptor& each : asked.list) found.push_back(look_up_file(each.blob));
    return abi::Status::success;
  });
}

abi::Status Backend::getNotifs(abi::Notifications& arrived) {
  return guarded("notifications were not taken", [&] {
    inbox_.take(arrived);
    return abi::Status::success;
  });
}

abi::Status Backend::genNotif(const std::string& agent, const std::string& bytes) const {
  constexpr auto what = "a notification was not sent";
  return guarded(what, [&] {
    const auto link = link_to(agent);
    if (!link) return refuse(what, link.error());
    const auto notification = outgoing(bytes, **link, 0);
    if (!notification) return refuse(what, notification.error());
    return status_of(what, (*link)->notify(*notification));
  });
}

Result<LinkPtr> Backend::link_to(const std::string& agent) const {
  return agent == local_agent() ? loopback_.link() : agents_.find(agent);
}

Result<Outgoing> Backend::outgoing(const std::string& bytes, const Link& link,
                                   std::size_t carriers) const {
  return Outgoing::make(next_notification_++, local_agent(), bytes, link.signal_bytes(), carriers);
}

}  // namespace weft::nixl
