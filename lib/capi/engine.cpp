// The C API: engines, what they are made of, and their peers.
#include "capi/boundary.hpp"
#include "config/setting_text.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

std::string or_default(const char* given, const std::string& otherwise) {
  return given != nullptr ? given : otherwise;
}

weft_config to_c(const Config& config) {
  weft_config c{};
  c.size = sizeof c;
  c.max_nics = config.max_nics;
  c.allow_emulation = config.allow_emulation;
  c.allow_unauthenticated_network = config.allow_unauthenticated_network;
  c.peer_events = config.peer_events;
  c.progress = static_cast<std::int32_t>(config.progress);
  c.transport = static_cast<std::int32_t>(config.transport);
  c.rails = config.rails;
  c.threads = config.threads;
  c.spin_ns = config.spin.count();
  c.copy_at_once_bytes = config.copy_at_once_bytes;
  c.chunk_bytes = config.chunk_bytes;
  c.window = config.window;
  c.bounce_buffer_bytes = config.bounce_buffer_bytes;
  c.bounce_buffers = config.bounce_buffers;
  c.max_message = config.max_message;
  c.message_credits = config.message_credits;
  c.unclaimed_bytes = config.unclaimed_bytes;
  c.send_queue = config.send_queue;
  c.max_transfers = config.max_transfers;
  c.default_timeout_ns = config.default_timeout.count();
  c.heartbeat_ns = config.heartbeat.count();
  c.death_after_ns = config.death_after.count();
  c.register_everywhere = config.register_everywhere;
  c.place_threads = config.place_threads;
  c.tls_check_host = config.tls_check_host;
  c.share_gpu_memory = config.share_gpu_memory;
  c.metrics_off = !config.metrics;
  return c;
}

Result<std::vector<std::string>> strings(const char* name, const char* const* texts,
                                         std::size_t count) {
  if (auto listed = check({list(name, texts, count)}); !listed) return fail(listed.error());
  std::vector<std::string> read;
  for (std::size_t i = 0; i < count; ++i) {
    if (auto given = check({{name, texts[i]}}); !given) return fail(given.error());
    read.emplace_back(texts[i]);
  }
  return read;
}

Result<Config> from_c(const weft_config& c) {
  const auto progress =
      enumerator("config->progress", c.progress, Progress::threads, Progress::manual);
  if (!progress) return fail(progress.error());
  const auto transport = enumerator("config->transport", c.transport, TransportKind::automatic,
                                    TransportKind::device_copy);
  if (!transport) return fail(transport.error());
  auto providers = strings("config->providers", c.providers, c.provider_count);
  if (!providers) return fail(std::move(providers.error()));
  auto nics = strings("config->nics", c.nics, c.nic_count);
  if (!nics) return fail(std::move(nics.error()));
  auto gpus = strings("config->gpus", c.gpus, c.gpu_count);
  if (!gpus) return fail(std::move(gpus.error()));

  auto policy = policy_of("config->policy", c.policy);
  if (!policy) return fail(std::move(policy.error()));
  auto latency_policy = policy_of("config->latency_policy", c.latency_policy);
  if (!latency_policy) return fail(std::move(latency_policy.error()));
  auto bulk_policy = policy_of("config->bulk_policy", c.bulk_policy);
  if (!bulk_policy) return fail(std::move(bulk_policy.error()));

  Config config;
  config.policy = std::move(*policy);
  config.latency_policy = std::move(*latency_policy);
  config.bulk_policy = std::move(*bulk_policy);
  if (auto read = core::from_text(or_default(c.peer_policies, ""), config.peer_policies);
      !read.empty())
    return fail(Code::invalid_argument, fmt::format("config->peer_policies must be {}", read));
  config.config_file = or_default(c.config_file, config.config_file);
  config.name = or_default(c.name, config.name);
  config.listen = or_default(c.listen, config.listen);
  config.advertise = or_default(c.advertise, config.advertise);
  config.rail_address = or_default(c.rail_address, config.rail_address);
  config.providers = std::move(*providers);
  config.nics = std::move(*nics);
  config.max_nics = c.max_nics;
  config.allow_emulation = c.allow_emulation;
  config.allow_unauthenticated_network = c.allow_unauthenticated_network;
  config.peer_events = c.peer_events;
  config.progress = *progress;
  config.transport = *transport;
  config.rails = c.rails;
  config.threads = c.threads;
  config.spin = Nanoseconds(c.spin_ns);
  config.chunk_bytes = c.chunk_bytes;
  config.window = c.window;
  config.bounce_buffer_bytes = c.bounce_buffer_bytes;
  config.bounce_buffers = c.bounce_buffers;
  config.max_message = c.max_message;
  config.message_credits = c.message_credits;
  config.unclaimed_bytes = c.unclaimed_bytes;
  config.send_queue = c.send_queue;
  config.max_transfers = c.max_transfers;
  config.default_timeout = Nanoseconds(c.default_timeout_ns);
  config.heartbeat = Nanoseconds(c.heartbeat_ns);
  config.death_after = Nanoseconds(c.death_after_ns);
  config.gpus = std::move(*gpus);
  config.topo_xml = or_default(c.topo_xml, config.topo_xml);
  config.register_everywhere = c.register_everywhere;
  config.place_threads = c.place_threads;
  config.secret_file = or_default(c.secret_file, config.secret_file);
  config.tls_certificate = or_default(c.tls_certificate, config.tls_certificate);
  config.tls_key = or_default(c.tls_key, config.tls_key);
  config.tls_authorities = or_default(c.tls_authorities, config.tls_authorities);
  config.tls_check_host = c.tls_check_host;
  config.share_gpu_memory = c.share_gpu_memory;
  config.copy_at_once_bytes = c.copy_at_once_bytes;
  config.metrics = !c.metrics_off;
  config.metrics_listen = or_default(c.metrics_listen, config.metrics_listen);
  return config;
}

Result<Config> config_of(const weft_config* given) {
  if (given == nullptr) return Config{};
  return read("config", given).and_then(from_c);
}

weft_rail_info to_c(const RailInfo& rail) {
  weft_rail_info c{};
  c.name = rail.name.c_str();
  c.provider = rail.capability.provider.c_str();
  c.libfabric_version = rail.capability.libfabric_version.c_str();
  c.domain = rail.capability.domain.c_str();
  c.thread = rail.thread;
  c.same_host_only = rail.capability.same_host_only;
  c.operations = rail.operations;
  c.bytes = rail.bytes;
  c.in_flight = rail.in_flight;
  c.lost = rail.lost;
  c.max_message = rail.capability.max_message;
  c.window = rail.capability.window;
  c.gbps = rail.capability.gbps;
  c.emulated_write = rail.capability.write == Origin::emulated;
  c.emulated_read = rail.capability.read == Origin::emulated;
  c.copies = rail.capability.write_carriage.copies();
  c.pci = rail.capability.pci.c_str();
  c.numa_node = rail.numa_node;
  return c;
}

weft_setting to_c(const Setting& setting) {
  weft_setting c{};
  c.name = setting.name.c_str();
  c.value = setting.value.c_str();
  c.source = static_cast<std::int32_t>(setting.source);
  c.place = setting.place.c_str();
  return c;
}

weft_candidate to_c(const Candidate& candidate) {
  weft_candidate c{};
  c.provider = candidate.provider.c_str();
  c.domain = candidate.domain.c_str();
  c.fabric = candidate.fabric.c_str();
  c.reason = candidate.reason.c_str();
  c.taken = candidate.taken;
  return c;
}

}  // namespace

void weft_config_init(weft_config* config, size_t size) {
  if (config == nullptr || size < sizeof config->size) return;
  config->size = size;
  // Fails only where there is nothing sensible to fill in.
  std::ignore = fill("config", config, to_c(Config{}));
}

weft_code weft_engine_open(const weft_config* config, weft_engine** engine, weft_error** error) {
  return call(error, {{"engine", engine}},
              [&] { return give(engine, config_of(config).and_then(Engine::open)); });
}

weft_code weft_engine_close(weft_engine* engine, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"engine", engine}}, [&] { return engine->value.close(in(timeout_ns)); });
}

void weft_engine_free(weft_engine* engine) {
  delete engine;
}

const char* weft_engine_name(const weft_engine* engine) {
  return engine != nullptr ? engine->value.name().c_str() : nullptr;
}

const char* weft_engine_address(const weft_engine* engine) {
  return engine != nullptr ? engine->value.address().c_str() : nullptr;
}

weft_code weft_engine_info(const weft_engine* engine, weft_info** info, weft_error** error) {
  return call(error, {{"engine", engine}, {"info", info}},
              [&] { return give(info, Result<Info>(engine->value.info())); });
}

weft_code weft_discover(const weft_config* config, weft_info** info, weft_error** error) {
  return call(error, {{"info", info}}, [&] {
    return give(info, config_of(config).and_then(discover).map([](auto&& candidates) {
      Info found;
      found.candidates = std::move(candidates);
      return found;
    }));
  });
}

void weft_info_free(weft_info* info) {
  delete info;
}

uint64_t weft_info_incarnation(const weft_info* info) {
  return info != nullptr ? info->value.incarnation : 0;
}
uint64_t weft_info_transfers_active(const weft_info* info) {
  return info != nullptr ? info->value.transfers_active : 0;
}
uint64_t weft_info_segments(const weft_info* info) {
  return info != nullptr ? info->value.segments : 0;
}
size_t weft_info_rail_count(const weft_info* info) {
  return info != nullptr ? info->value.rails.size() : 0;
}
size_t weft_info_candidate_count(const weft_info* info) {
  return info != nullptr ? info->value.candidates.size() : 0;
}

size_t weft_info_setting_count(const weft_info* info) {
  return info != nullptr ? info->value.settings.size() : 0;
}
const char* weft_info_fallback(const weft_info* info) {
  return info != nullptr ? info->value.fallback.c_str() : nullptr;
}

weft_code weft_info_setting(const weft_info* info, size_t index, weft_setting* setting,
                            weft_error** error) {
  return call(error, {{"info", info}, {"setting", setting}}, [&] {
    return at("setting", info->value.settings, index).and_then([&](const Setting* found) {
      return fill("setting", setting, to_c(*found));
    });
  });
}

weft_code weft_info_rail(const weft_info* info, size_t index, weft_rail_info* rail,
                         weft_error** error) {
  return call(error, {{"info", info}, {"rail", rail}}, [&] {
    return at("rail", info->value.rails, index).and_then([&](const RailInfo* found) {
      return fill("rail", rail, to_c(*found));
    });
  });
}

weft_code weft_info_candidate(const weft_info* info, size_t index, weft_candidate* candidate,
                              weft_error** error) {
  return call(error, {{"info", info}, {"candidate", candidate}}, [&] {
    return at("candidate", info->value.candidates, index).and_then([&](const Candidate* found) {
      return fill("candidate", candidate, to_c(*found));
    });
  });
}

weft_code weft_engine_connect(weft_engine* engine, const char* address, int64_t timeout_ns,
                              weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"address", address}, {"peer", peer}},
              [&] { return give(peer, engine->value.connect(address, in(timeout_ns))); });
}

weft_code weft_engine_keep_connected(weft_engine* engine, const char* address, int64_t timeout_ns,
                                     weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"address", address}, {"peer", peer}},
              [&] { return give(peer, engine->value.keep_connected(address, in(timeout_ns))); });
}

weft_code weft_engine_peer(weft_engine* engine, const char* name, int64_t timeout_ns,
                           weft_peer** peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"name", name}, {"peer", peer}},
              [&] { return give(peer, engine->value.peer(name, in(timeout_ns))); });
}

weft_code weft_engine_accept(weft_engine* engine, int64_t timeout_ns, weft_peer** peer,
                             weft_error** error) {
  return call(error, {{"engine", engine}, {"peer", peer}},
              [&] { return give(peer, engine->value.accept(in(timeout_ns))); });
}

weft_code weft_engine_peers(const weft_engine* engine, weft_peer** peers, size_t capacity,
                            size_t* count, weft_error** error) {
  return call(error, {{"engine", engine}, list("peers", peers, capacity), {"count", count}},
              [&]() -> Result<void> {
                std::vector<std::unique_ptr<weft_peer>> made;
                const std::vector<Peer> up = engine->value.peers();
                for (std::size_t i = 0; i < std::min(capacity, up.size()); ++i)
                  made.push_back(std::unique_ptr<weft_peer>(new weft_peer{up[i]}));
                for (std::size_t i = 0; i < made.size(); ++i) peers[i] = made[i].release();
                *count = capacity > 0 ? made.size() : up.size();
                return {};
              });
}

weft_code weft_engine_disconnect(weft_engine* engine, const weft_peer* peer, weft_error** error) {
  return call(error, {{"engine", engine}, {"peer", peer}},
              [&] { return engine->value.disconnect(peer->value); });
}

weft_code weft_engine_reopen(weft_engine* engine, const char* rail, int64_t timeout_ns,
                             weft_error** error) {
  return call(error, {{"engine", engine}, {"rail", rail}},
              [&] { return engine->value.reopen(rail, in(timeout_ns)); });
}

void weft_peer_free(weft_peer* peer) {
  delete peer;
}

const char* weft_peer_name(const weft_peer* peer) {
  return peer != nullptr ? peer->value.name().c_str() : nullptr;
}
uint64_t weft_peer_incarnation(const weft_peer* peer) {
  return peer != nullptr ? peer->value.incarnation() : 0;
}
bool weft_peer_up(const weft_peer* peer) {
  return peer != nullptr && peer->value.up();
}
bool weft_peer_same_host(const weft_peer* peer) {
  return peer != nullptr && peer->value.same_host();
}
const char* weft_peer_address(const weft_peer* peer) {
  return peer != nullptr ? peer->value.address().c_str() : nullptr;
}
const char* weft_peer_route_reason(const weft_peer* peer) {
  return peer != nullptr ? peer->value.route_reason().c_str() : nullptr;
}

const char* weft_peer_fallback(const weft_peer* peer) {
  return peer != nullptr ? peer->value.fallback().c_str() : nullptr;
}
size_t weft_peer_rail_count(const weft_peer* peer) {
  return peer != nullptr ? peer->rails.size() : 0;
}
const char* weft_peer_rail(const weft_peer* peer, size_t index) {
  return index < weft_peer_rail_count(peer) ? peer->rails[index].c_str() : nullptr;
}

weft_code weft_peer_check(const weft_peer* peer, weft_error** error) {
  return call(error, {{"peer", peer}}, [&]() -> Result<void> {
    if (peer->value.up()) return {};
    return fail(
        peer->value.why_down().value_or(Error(Code::peer_down, "the peer has not come up yet")));
  });
}
