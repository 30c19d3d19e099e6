#include "nixl/loopback.hpp"

#include <algorithm>

#include "base/sync.hpp"
#include "nixl/options.hpp"

namespace weft::nixl {
namespace {

/// It only connects. Over shared memory alone, where the agent's engine has it: that is the way
/// that would be taken, and NICs need not be opened twice.
Config config_beside(const Engine& own) {
  Config config = config_of(own);
  config.name.resize(std::min<std::size_t>(config.name.size(), 240));
  config.name += "/loopback";
  config.listen.clear();
  config.advertise.clear();
  config.peer_events = false;
  config.metrics = false;
  config.metrics_listen.clear();
  config.config_file.clear();
  config.use_environment = false;
  const auto rails = own.info().rails;
  const bool shared = std::any_of(rails.begin(), rails.end(), [](const RailInfo& rail) {
    return rail.capability.provider == "shm";
  });
  if (shared) config.providers = {"shm"};
  return config;
}

}  // namespace

Result<void> Loopback::open() {
  if (link_) return {};
  auto engine = Engine::open(config_beside(own_));
  if (!engine) return fail(std::move(engine.error()));
  engine_ = std::make_shared<Engine>(std::move(*engine));
  const auto peer = engine_->connect(own_.address(), Deadline::in(meeting_time));
  if (!peer) return fail(peer.error());
  const Config config = config_of(own_);
  link_ = std::make_shared<Link>(Link::Side{engine_, Cutter(engine_), config.default_timeout},
                                 *peer, agent_, config.max_message);
  return {};
}

Result<LinkPtr> Loopback::link() {
  const core::Lock lock(mutex_);
  if (auto opened = open(); !opened) return fail(std::move(opened.error()));
  return link_;
}

Result<std::shared_ptr<Segment>> Loopback::local(Registration& registration) {
  const core::Lock lock(mutex_);
  if (auto opened = open(); !opened) return fail(std::move(opened.error()));
  auto& segment = known_[&registration].segment;
  if (!segment) {
    auto added = engine_->add(registration.of().memory);
    if (!added) return fail(std::move(added.error()));
    segment = std::make_shared<Segment>(std::move(*added));
  }
  return segment;
}

Result<Remote> Loopback::remote(Registration& registration) {
  const core::Lock lock(mutex_);
  if (auto opened = open(); !opened) return fail(std::move(opened.error()));
  auto& remote = known_[&registration].remote;
  if (!remote) {
    auto imported = engine_->import(registration.grant());
    if (!imported) return fail(std::move(imported.error()));
    remote = std::move(*imported);
  }
  return *remote;
}

Result<void> Loopback::forget(Registration& registration, Deadline deadline) {
  const auto segment = take(registration);
  return segment ? segment->release(deadline) : Result<void>();
}

/// Its release may wait: not with the lock.
std::shared_ptr<Segment> Loopback::take(const Registration& registration) {
  const core::Lock lock(mutex_);
  const auto known = known_.extract(&registration);
  return known ? known.mapped().segment : nullptr;
}

}  // namespace weft::nixl
